import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findEmail } from '../../src/domain/accounts/change-email.js'
import { createResetLink } from '../../src/domain/accounts/password-reset.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { openRecordedLog } from '../support/assertions/recorded-log.js'
import { statementsDuring } from '../support/assertions/statement-count.js'
import { openBrowser, type TestBrowser } from '../support/browser/scriptless-browser.js'
import { confirmMailbox, runMails } from '../support/mail/mail-runs.js'
import { startSmtpServer, type TestSmtpServer } from '../support/mail/smtp-server.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

const passwordOf = (name: string) => `the password of ${name}`
let smtp: TestSmtpServer
let opened: TestPod
const log = openRecordedLog()

beforeAll(async () => {
  smtp = await startSmtpServer()
  opened = await buildPod({
    log: log.log,
    environment: { SMTP_URL: smtp.url, MAIL_FROM: 'pod@pod.example', SIGN_IN_LIMIT: '0' },
  })
  const names = ['alice', 'bob', 'carol', 'dan', 'erin', 'frank'] as const
  await opened.people(...names)
  for (const name of names) await confirmMailbox(opened.pod, name)
})
afterAll(async () => {
  await opened.close()
  await smtp.close()
})
beforeEach(async () => {
  await opened.pod.db('outbox').delete()
  smtp.mails.length = 0
})

const browser = () => openBrowser(opened.app, opened.pod.config.url)

async function requestReset(typed: string, reader = browser()) {
  await reader.visit('/users/password/new')
  return reader.submit({ username: typed })
}

/** The path of the link in the newest mail to an address. */
function linkTo(address: string): string {
  const text = smtp.mails.findLast(({ to }) => to.includes(address))?.text ?? ''
  return /https:\/\/pod\.example(\/users\/\S+)/.exec(text)?.[1] ?? 'no link'
}

async function signIn(username: string, password: string, reader: TestBrowser = browser()): Promise<boolean> {
  await reader.visit('/users/sign_in')
  await reader.submit({ username, password }, '/users/sign_in')
  return (await reader.visit('/settings')).body.includes('<h1>Settings</h1>')
}

async function setPassword(link: string, password: string) {
  const reader = browser()
  await reader.visit(link)
  return reader.submit({ password, password_again: password })
}

describe('a reset of the password', () => {
  it('has the same answer and statements for every input, and no mail for unknown, locked and unconfirmed accounts', async () => {
    await opened.pod.db('users').where({ username: 'bob' }).update({ lockedAt: opened.pod.db.fn.now() })
    await opened.pod.db('users').where({ username: 'carol' }).update({ emailConfirmedAt: null })
    const answers = []
    for (const typed of ['alice', 'ALICE@mail.example', 'nobody', 'bob', 'carol', 'x'.repeat(5_000), '']) {
      const reader = browser()
      await reader.visit('/users/password/new')
      const statements = await statementsDuring(() => reader.submit({ username: typed }))
      answers.push({ status: reader.page.statusCode, body: reader.page.body, statements })
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
    expect(answers[0]?.status).toBe(200)

    await runMails(opened.pod)
    expect(smtp.mails.map(({ to }) => to[0])).toEqual(['alice@mail.example', 'alice@mail.example'])
    expect(await opened.pod.db('outbox').where({ queue: 'mail' })).toEqual([])
  })

  it('works once, ends all sessions and tokens, signs nobody in, and a newer link ends the older', async () => {
    const here = browser()
    expect(await signIn('dan', passwordOf('dan'), here)).toBe(true)
    const { dan } = await opened.people('dan')
    expect((await dan.get('/api/v1/user')).statusCode).toBe(200)
    await requestReset('dan')
    await runMails(opened.pod)
    const older = linkTo('dan@mail.example')
    await requestReset('dan@pod.example')
    await runMails(opened.pod)
    const newer = linkTo('dan@mail.example')

    const page = await browser().visit(newer)
    expect(page.body).toContain('Set a new password')
    expect((await browser().visit(older)).body).toContain('not valid any more')
    expect((await setPassword(newer, 'short')).body).toContain('at least 10 characters')
    expect((await setPassword(newer, 'another horse battery')).body).toContain('Your password has changed')
    expect((await browser().visit(newer)).body).toContain('not valid any more')

    expect((await here.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    expect((await dan.get('/api/v1/user')).statusCode).toBe(401)
    expect(await signIn('dan', passwordOf('dan'))).toBe(false)
    expect(await signIn('dan', 'another horse battery')).toBe(true)
    await runMails(opened.pod)
    expect(smtp.mails.at(-1)?.headers['subject']).toContain('password of your account')
  })

  it('has three mails an hour for an account, and ten requests for a network address; beyond them nothing is sent', async () => {
    for (const _ of [1, 2, 3, 4]) expect((await requestReset('erin')).statusCode).toBe(200)
    await runMails(opened.pod)
    expect(smtp.mails).toHaveLength(3)

    const reader = browser()
    for (const _ of Array.from({ length: 10 })) await requestReset('nobody', reader)
    await runMails(opened.pod)
    const answer = await requestReset('frank', reader)
    expect(answer.body).toContain('Look into your mailbox')
    expect(await opened.pod.db('outbox').where({ queue: 'mail' })).toEqual([])
  })

  it('needs a form of this browser', async () => {
    const answer = await opened.inject({
      method: 'POST',
      url: '/users/password/new',
      payload: 'username=alice',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(answer.statusCode).toBe(403)
  })

  it('is possible by a link of the operator, once', async () => {
    const link = new URL(await createResetLink(opened.pod, COMMAND_ACTOR, 'frank'))
    const path = `${link.pathname}${link.search}`
    expect((await setPassword(path, 'another horse battery')).body).toContain('Your password has changed')
    expect((await browser().visit(path)).body).toContain('not valid any more')
  })
})

describe('a change of the e-mail address', () => {
  async function change(reader: TestBrowser, email: string) {
    await reader.visit('/settings/email')
    return reader.submit({ email }, '/settings/email')
  }

  it('sends two mails, counts after the confirmation, and can be undone', async () => {
    const alice = browser()
    await signIn('alice', passwordOf('alice'), alice)
    expect((await change(alice, 'a@b')).statusCode).toBe(422)
    await change(alice, 'new@mail.example')
    await runMails(opened.pod)
    expect(smtp.mails.map(({ to }) => to[0]).toSorted()).toEqual(['alice@mail.example', 'new@mail.example'])
    expect(await findEmail(opened.pod, 'alice')).toMatchObject({
      email: 'alice@mail.example',
      unconfirmedEmail: 'new@mail.example',
    })

    const link = linkTo('new@mail.example')
    const undo = linkTo('alice@mail.example')
    const reader = browser()
    await reader.visit(link)
    await reader.visit(link)
    expect((await findEmail(opened.pod, 'alice')).email).toBe('alice@mail.example')
    expect((await reader.submit({})).body).toContain('is confirmed')
    expect(await findEmail(opened.pod, 'alice')).toMatchObject({
      email: 'new@mail.example',
      confirmed: true,
      unconfirmedEmail: null,
    })

    await reader.visit(undo)
    expect((await reader.submit({})).body).toContain('restored')
    expect((await findEmail(opened.pod, 'alice')).email).toBe('alice@mail.example')
    expect((await alice.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    expect(await signIn('alice', passwordOf('alice'))).toBe(false)
  })

  it('does not tell that another account has the address; its link is not valid', async () => {
    await opened.pod.db('mails').delete()
    const erin = browser()
    await signIn('erin', passwordOf('erin'), erin)
    expect((await change(erin, 'DAN@mail.example')).statusCode).toBe(200)
    await runMails(opened.pod)
    const reader = browser()
    await reader.visit(linkTo('DAN@mail.example'))
    expect((await reader.submit({})).body).toContain('not valid any more')
  })
})

it('leaves no address, token or subject in the request log', () => {
  const text = JSON.stringify(log.lines)
  expect(text).not.toContain('mail.example')
  expect(text).not.toMatch(/token=|Reset your password/)
})

it('offers no reset without a mail server', async () => {
  await using plain = await buildPod({ environment: { POD_NAME: 'Plain' } })
  const reader = openBrowser(plain.app, plain.pod.config.url)
  expect((await reader.visit('/users/password/new')).statusCode).toBe(404)
  expect((await reader.visit('/users/sign_in')).body).toContain('Ask the operator')
})
