import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { getEmail } from '../../../src/domain/accounts/change-email.js'
import { closeOwnAccount } from '../../../src/domain/accounts/closing/own-closing.js'
import {
  checkCode,
  confirmTotp,
  findOrMakeTotpSecret,
  renewRecoveryCodes,
  turnTotpOff,
} from '../../../src/domain/accounts/factors/second-factor.js'
import { readBase32, totpCode } from '../../../src/domain/accounts/factors/totp.js'
import { createResetLink } from '../../../src/domain/accounts/passwords/password-reset.js'
import { recordDownload, requestExport } from '../../../src/domain/archives/exports.js'
import { accountMailText, notificationMailText } from '../../../src/domain/mail/mail-texts.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { makeWaitingExports } from '../../../src/federation/archives/make-exports.js'
import {
  ACCOUNT_MAIL_KINDS,
  isNotificationMailKind,
  NOTIFICATION_MAIL_DELIVERY,
} from '../../../src/persistence/mail/mail-kinds.js'
import { openRecordedLog } from '../../support/assertions/recorded-log.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { openBrowser, type TestBrowser } from '../../support/browser/scriptless-browser.js'
import { confirmMailbox, runMails } from '../../support/mail/mail-runs.js'
import { startSmtpServer, type TestSmtpServer } from '../../support/mail/smtp-server.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const passwordOf = (name: string) => `the password of ${name}`
let smtp: TestSmtpServer
let opened: TestPod
const log = openRecordedLog()
/** All mails of this file, with their links. */
const sent: TestSmtpServer['mails'][number][] = []

beforeAll(async () => {
  smtp = await startSmtpServer()
  opened = await buildPod({
    log: log.log,
    environment: { SMTP_URL: smtp.url, MAIL_FROM: 'pod@pod.example', SIGN_IN_LIMIT: '0' },
  })
  const names = [
    'alice',
    'bob',
    'carol',
    'dan',
    'erin',
    'frank',
    'gina',
    'henry',
    'ida',
    'jack',
    'kate',
    'liam',
  ] as const
  await opened.people(...names)
  for (const name of names) await confirmMailbox(opened.pod, name)
})
afterAll(async () => {
  await opened.close()
  await smtp.close()
})
beforeEach(async () => {
  await opened.pod.db('outbox').delete()
  sent.push(...smtp.mails)
  smtp.mails.length = 0
})

function sentTokens(): string[] {
  return sent.flatMap(({ text }) => [...text.matchAll(/token=([\w-]+)/g)].map(([, token = '']) => token))
}

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

  it('works once, ends all sessions and tokens without a sign-in, and a newer link ends the older', async () => {
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
    expect((await browser().visit(older)).body).toContain('no longer valid')
    expect((await setPassword(newer, 'short')).body).toContain('at least 10 characters')
    for (const own of ['dan@pod.example', 'DAN@mail.example'])
      expect((await setPassword(newer, own)).body).toContain('not your name or address')
    expect((await setPassword(newer, 'another horse battery')).body).toContain('Your password has changed')
    expect((await browser().visit(newer)).body).toContain('no longer valid')

    expect((await here.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    expect((await dan.get('/api/v1/user')).statusCode).toBe(401)
    expect(await signIn('dan', passwordOf('dan'))).toBe(false)
    expect(await signIn('dan', 'another horse battery')).toBe(true)
    await runMails(opened.pod)
    expect(smtp.mails.map(({ headers }) => headers['subject'])).toContainEqual(
      expect.stringContaining('password of your account'),
    )
  })

  it('has three mails an hour for an account, and ten requests for a network address; beyond them nothing is sent', async () => {
    for (const _ of [1, 2, 3, 4]) expect((await requestReset('erin')).statusCode).toBe(200)
    await runMails(opened.pod)
    expect(smtp.mails).toHaveLength(3)

    const reader = browser()
    for (const _ of Array.from({ length: 10 })) await requestReset('nobody', reader)
    await runMails(opened.pod)
    const answer = await requestReset('frank', reader)
    expect(answer.body).toContain('Check your e-mail')
    expect(await opened.pod.db('outbox').where({ queue: 'mail' })).toEqual([])
  })

  it('has ten new passwords an hour from a network address, and looks for the token before it hashes', async () => {
    const reader = browser()
    await requestReset('nobody', reader)
    const form = reader.cookies.get('pod_form') ?? ''
    const cookie = [...reader.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const typed = { form, token: 'x', password: 'short', password_again: 'short' }
    const statuses = []
    for (let n = 0; n < 11; n += 1) {
      const answer = await opened.inject({
        method: 'POST',
        url: '/users/password/edit',
        payload: new URLSearchParams(typed).toString(),
        headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
      })
      expect(answer.body).not.toContain('at least 10 characters')
      statuses.push(answer.statusCode)
    }
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 422), 429])
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
    expect((await browser().visit(path)).body).toContain('no longer valid')
  })
})

describe('a change of the e-mail address', () => {
  async function change(reader: TestBrowser, email: string) {
    await reader.visit('/settings/email')
    return reader.submit({ email }, '/settings/email')
  }

  async function press(link: string): Promise<string> {
    const reader = browser()
    await reader.visit(link)
    return (await reader.submit({})).body
  }

  async function openSignedIn(username: string): Promise<TestBrowser> {
    const reader = browser()
    expect(await signIn(username, passwordOf(username), reader)).toBe(true)
    return reader
  }

  it('sends two mails, counts after the confirmation, and can be undone', async () => {
    const alice = browser()
    await signIn('alice', passwordOf('alice'), alice)
    expect((await change(alice, 'a@b')).statusCode).toBe(422)
    await change(alice, 'new@mail.example')
    await runMails(opened.pod)
    expect(smtp.mails.map(({ to }) => to[0]).toSorted()).toEqual(['alice@mail.example', 'new@mail.example'])
    expect(await getEmail(opened.pod, 'alice')).toMatchObject({
      email: 'alice@mail.example',
      unconfirmedEmail: 'new@mail.example',
    })

    const link = linkTo('new@mail.example')
    const undo = linkTo('alice@mail.example')
    const reader = browser()
    await reader.visit(link)
    await reader.visit(link)
    expect((await getEmail(opened.pod, 'alice')).email).toBe('alice@mail.example')
    expect((await reader.submit({})).body).toContain('is confirmed')
    expect(await getEmail(opened.pod, 'alice')).toMatchObject({
      email: 'new@mail.example',
      confirmed: true,
      unconfirmedEmail: null,
    })

    const { alice: application } = await opened.people('alice')
    expect((await application.get('/api/v1/user')).statusCode).toBe(200)
    await reader.visit(undo)
    expect((await reader.submit({})).body).toContain('restored')
    expect((await getEmail(opened.pod, 'alice')).email).toBe('alice@mail.example')
    expect((await alice.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    expect((await application.get('/api/v1/user')).statusCode).toBe(401)
    expect(await signIn('alice', passwordOf('alice'))).toBe(false)
  })

  it('can be undone after a second change and a reset by the new mailbox', async () => {
    const thief = await openSignedIn('gina')
    await change(thief, 'thief1@mail.example')
    await runMails(opened.pod)
    const undo = linkTo('gina@mail.example')
    expect(await press(linkTo('thief1@mail.example'))).toContain('is confirmed')
    await change(thief, 'thief2@mail.example')
    await runMails(opened.pod)
    const undoOfThief = linkTo('thief1@mail.example')
    await requestReset('gina')
    await runMails(opened.pod)
    const taken = await setPassword(linkTo('thief1@mail.example'), 'a thief with a battery')
    expect(taken.body).toContain('Your password has changed')

    expect(await press(undo)).toContain('restored')
    expect(await getEmail(opened.pod, 'gina')).toMatchObject({ email: 'gina@mail.example', unconfirmedEmail: null })
    expect(await press(undoOfThief)).toContain('no longer valid')
  })

  it('ends with a new password: a mail that waits is not sent', async () => {
    const here = await openSignedIn('henry')
    await change(here, 'late@mail.example')
    await runMails(opened.pod)
    const confirmation = linkTo('late@mail.example')
    await change(here, 'later@mail.example')
    await here.visit('/settings/password')
    const typed = { password: 'another horse battery', password_again: 'another horse battery' }
    expect((await here.submit(typed, '/settings/password')).body).toContain('Your new password is set')
    await runMails(opened.pod)
    expect(linkTo('later@mail.example')).toBe('no link')

    await change(here, 'late@mail.example')
    await requestReset('henry')
    await opened.pod.db('outbox').where({ name: 'send-mail' }).update({ queue: 'maintenance' })
    await runMails(opened.pod)
    await setPassword(linkTo('henry@mail.example'), 'a third horse battery')
    await opened.pod.db('outbox').where({ name: 'send-mail' }).update({ queue: 'mail' })
    await runMails(opened.pod)
    expect(linkTo('late@mail.example')).toBe(confirmation)
    expect(await press(confirmation)).toContain('no longer valid')
    expect((await getEmail(opened.pod, 'henry')).unconfirmedEmail).toBeNull()
  })

  it('sends five confirmations a day to a mailbox, and twenty mails for a user', async () => {
    const ida = await openSignedIn('ida')
    for (let n = 0; n < 7; n += 1) expect((await change(ida, `Unknown+${n}@mail.example`)).statusCode).toBe(200)
    await change(ida, 'unknown@mail.example')
    await runMails(opened.pod)
    const toUnknown = () => smtp.mails.filter(({ to }) => /^unknown/i.test(to[0] ?? '')).length
    expect(toUnknown()).toBe(5)
    await change(ida, 'unknown@mail.example')
    for (let n = 0; n < 7; n += 1) await change(ida, `other${n}@mail.example`)
    const { id: userId } = await opened.pod.db('users').where({ username: 'ida' }).first('id')
    expect(await opened.pod.db('mails').where({ userId })).toHaveLength(20)
    await runMails(opened.pod)
    expect(toUnknown()).toBe(5)
    expect(linkTo('other6@mail.example')).toBe('no link')
    expect((await getEmail(opened.pod, 'ida')).unconfirmedEmail).toBe('other6@mail.example')
  })

  it('ends the links to reset the password that went to the old address', async () => {
    const jack = await openSignedIn('jack')
    await requestReset('jack')
    await runMails(opened.pod)
    const old = linkTo('jack@mail.example')
    await change(jack, 'jack2@mail.example')
    await runMails(opened.pod)
    expect(await press(linkTo('jack2@mail.example'))).toContain('is confirmed')
    expect((await browser().visit(old)).body).toContain('no longer valid')
  })

  it('does not reveal that another account has the address; its link is not valid', async () => {
    await opened.pod.db('mails').delete()
    const erin = browser()
    await signIn('erin', passwordOf('erin'), erin)
    expect((await change(erin, 'DAN@mail.example')).statusCode).toBe(200)
    await runMails(opened.pod)
    const reader = browser()
    await reader.visit(linkTo('DAN@mail.example'))
    expect((await reader.submit({})).body).toContain('no longer valid')
  })
})

describe('a mail about the safety of the account', () => {
  const kinds = () => smtp.mails.map(({ to, headers }) => [to[0], headers['subject']])
  const clock = () => opened.pod.now().getTime()

  it('reports a sign-in in a browser that was not used for 90 days, and not the first browser of all', async () => {
    const { db } = opened.pod
    const known = browser()
    const signInAgain = async () => {
      await known.visit('/')
      if (known.page.body.includes('action="/users/sign_out"')) await known.submit({}, '/users/sign_out')
      expect(await signIn('kate', passwordOf('kate'), known)).toBe(true)
    }
    await signInAgain()
    await signInAgain()
    await runMails(opened.pod)
    expect(kinds()).toEqual([])
    expect(JSON.stringify(await db('known_browsers'))).not.toContain(known.cookies.get('pod_browser') ?? 'no cookie')

    expect(await signIn('kate', passwordOf('kate'))).toBe(true)
    await runMails(opened.pod)
    expect(kinds()).toEqual([['kate@mail.example', expect.stringContaining('New sign-in')]])
    const { id: userId } = await db('users').where({ username: 'kate' }).first('id')
    await db('known_browsers')
      .where({ userId })
      .update({ seenAt: new Date(clock() - 91 * 86_400_000) })
    await signInAgain()
    await runMails(opened.pod)
    expect(kinds()).toHaveLength(2)
    expect(await db('known_browsers').where({ userId })).toHaveLength(1)
  })

  it('reports changes of the second factor, and how many recovery codes remain', async () => {
    const { pod } = opened
    const { id: userId, personId } = await pod.db('users').where({ username: 'liam' }).first()
    const owner = { userId, address: 'liam@pod.example', role: null, sessionUid: 'none' }
    const secret = await findOrMakeTotpSecret(pod, userId, { keeps: false })
    await confirmTotp(pod, owner, totpCode(readBase32(secret), Math.floor(clock() / 30_000)))
    const [code = ''] = await renewRecoveryCodes(pod, owner)
    expect(await checkCode(pod, userId, code.toLowerCase())).toBe('right')
    expect(await checkCode(pod, userId, code)).toBe('wrong')
    await runMails(pod)
    await turnTotpOff(pod, owner)
    await recordDownload(pod, { userId, personId, scopes: new Set() }, await finishedExport(userId), 'console')
    await runMails(pod)

    expect(smtp.mails.map(({ headers }) => headers['subject'])).toEqual([
      expect.stringContaining('is on'),
      expect.stringContaining('New recovery codes'),
      expect.stringContaining('A recovery code was used'),
      expect.stringContaining('is off'),
      expect.stringContaining('was downloaded'),
    ])
    expect(smtp.mails[2]?.text).toContain('Remaining recovery codes: 9.')
  })

  it('reports an export that is ready, with a link to the page and none to the file', async () => {
    const { pod } = opened
    const { id: userId, personId } = await pod.db('users').where({ username: 'liam' }).first()
    await requestExport(pod, { userId, personId, scopes: new Set() }, 'copy')
    await makeWaitingExports(pod, AbortSignal.timeout(60_000))
    await runMails(pod)

    expect(kinds()).toEqual([['liam@mail.example', expect.stringContaining('is ready')]])
    expect(smtp.mails[0]?.text).toMatch(/https:\/\/pod\.example\/settings\/export\s/)
  })

  it('reports the closing of the account, with the day in the time zone of its reader', async () => {
    const { pod } = opened
    const zone = { timeZone: 'Pacific/Kiritimati' }
    const [{ id }] = await pod.db('users').where({ username: 'liam' }).update(zone).returning('id')
    const closeAt = await closeOwnAccount(pod, id, 'liam')
    await runMails(pod)
    expect(kinds()).toEqual([['liam@mail.example', expect.stringContaining('is being closed')]])
    const day = new Intl.DateTimeFormat('en', { dateStyle: 'long', ...zone }).format(closeAt)
    expect(smtp.mails[0]?.text).toContain(`closed permanently on ${day}`)
  })

  async function finishedExport(userId: number) {
    const [row] = await opened.pod
      .db('exports')
      .insert({ uid: 'finished', userId, kind: 'photos', state: 'ready', createdAt: opened.pod.now() })
      .returning('*')
    return row
  }
})

it('signs in with an e-mail address at the host of the pod, unless it is the network id of another account', async () => {
  await opened.pod.db('users').where({ username: 'kate' }).update({ email: 'Kate.Smith@pod.example' })
  await opened.pod.db('users').where({ username: 'liam' }).update({ email: 'kate@pod.example' })
  expect(await signIn('kate.smith@pod.example', passwordOf('kate'))).toBe(true)
  expect(await signIn('kate@pod.example', passwordOf('kate'))).toBe(true)
  expect(await signIn('kate@pod.example', passwordOf('liam'))).toBe(false)
  await requestReset('kate.smith@pod.example')
  await runMails(opened.pod)
  expect(smtp.mails.at(-1)?.to).toEqual(['Kate.Smith@pod.example'])
})

it('signs in with a confirmed e-mail address, and not with an unconfirmed one', async () => {
  expect(await signIn('FRANK@mail.example', 'another horse battery')).toBe(true)
  await opened.pod.db('users').where({ username: 'frank' }).update({ emailConfirmedAt: null })
  expect(await signIn('frank@mail.example', 'another horse battery')).toBe(false)
  expect(await signIn('frank@pod.example', 'another horse battery')).toBe(true)
})

it('mail leaves no address, token or subject in the log', () => {
  const text = JSON.stringify(log.lines)
  expect(log.lines.length).toBeGreaterThan(100)
  for (const secret of [
    'mail.example',
    'token=',
    ...sentTokens(),
    ...sent.map(({ headers }) => headers['subject'] ?? ''),
  ]) {
    expect([secret, text.includes(secret)]).toEqual([secret, false])
  }
})

it('mail leaves no token or password in any table', async () => {
  const { db } = opened.pod
  const tokens = sentTokens()
  expect(tokens.length).toBeGreaterThan(5)
  const secrets = [...tokens, passwordOf('alice'), passwordOf('kate')].flatMap((text) => [
    text,
    Buffer.from(text).toString('hex'),
    Buffer.from(text, 'base64url').toString('hex'),
  ])
  const { rows: tables } = await db.raw(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname !~ '^(pg_|information_schema)'`,
  )
  expect(tables.length).toBeGreaterThan(50)
  for (const { name } of tables) {
    const { rows } = await db.raw(
      `select coalesce(string_agg(to_jsonb(rows)::text, ' '), '') as text from ${name} as rows`,
    )
    const found = secrets.filter((secret) => rows[0].text.includes(secret))
    expect([name, found]).toEqual([name, []])
  }
})

it('offers no reset without a mail server', async () => {
  await using plain = await buildPod({ environment: { POD_NAME: 'Plain' } })
  const reader = openBrowser(plain.app, plain.pod.config.url)
  expect((await reader.visit('/users/password/new')).statusCode).toBe(404)
  expect((await reader.visit('/users/sign_in')).body).toContain('Ask the operator')
})

it('a mail is in the language of the account, with plurals and sentences for every kind', async () => {
  const { db, config, locales } = opened.pod
  await db('users').where({ username: 'alice' }).update({ language: 'de' })
  await requestReset('alice')
  await runMails(opened.pod)

  expect(smtp.mails[0]?.headers['subject']).toBe(`Setz dein Passwort für ${config.podName} zurück`)
  expect(smtp.mails[0]?.text).toContain('Für alice@pod.example wurde ein neues Passwort angefordert')
  for (const language of locales.languages) {
    const t = locales.translator(language)
    const facts = { pod: 'Thornbury', account: 'a@b.example', address: 'c@d.example', count: 7, day: 'Monday' }
    const texts = [
      ...ACCOUNT_MAIL_KINDS.map((kind) => accountMailText(t, kind, facts)),
      ...Object.keys(NOTIFICATION_MAIL_DELIVERY)
        .filter(isNotificationMailKind)
        .flatMap((kind) =>
          [0, 1, 5].map((others) => notificationMailText(t, kind, { pod: 'Thornbury', name: 'Quin', others })),
        ),
    ]
    for (const text of texts) expect(JSON.stringify(text)).not.toMatch(/\{\w+[,}]|<\w|undefined|"mail\./)
    expect(notificationMailText(t, 'liked', { pod: 'Thornbury', name: 'Quin', others: 5 }).subject).toMatch(/Quin.*5/)
  }
  await db('users').where({ username: 'alice' }).update({ language: 'en' })
})
