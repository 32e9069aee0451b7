import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { insertInvitation } from '../../../src/domain/accounts/invitations.js'
import { approveSignUp, rejectSignUp } from '../../../src/domain/accounts/sign-ups/open-sign-up.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { addIpRule, addMailRule } from '../../../src/domain/moderation/sign-ups/network-rules.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { openBrowser, type TestBrowser } from '../../support/browser/scriptless-browser.js'
import { confirmMailbox, runMails } from '../../support/mail/mail-runs.js'
import { startSmtpServer, type TestSmtpServer } from '../../support/mail/smtp-server.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const PASSWORD = 'correct horse battery'
/** A domain whose mail another host takes. */
const HOSTED = 'hosted.example'
let smtp: TestSmtpServer
let opened: TestPod

beforeAll(async () => {
  smtp = await startSmtpServer()
  opened = await buildPod({
    change: (pod) => ({
      ...pod,
      mailExchanges: async (domain) => (domain === HOSTED ? ['in1.mx.wave.test'] : []),
    }),
    environment: {
      SMTP_URL: smtp.url,
      MAIL_FROM: 'pod@pod.example',
      REGISTRATIONS: 'open',
      EMAIL_DOMAIN_BLOCKLIST: 'trash.example',
    },
  })
  await createUser(opened.pod, { username: 'alice', password: PASSWORD })
  await confirmMailbox(opened.pod, 'alice')
})
afterAll(async () => {
  await opened.close()
  await smtp.close()
})
beforeEach(async () => {
  for (const table of ['outbox', 'mails', 'pending_sign_ups', 'sign_up_attempts']) await opened.pod.db(table).delete()
  smtp.mails.length = 0
})

const browser = () => openBrowser(opened.app, opened.pod.config.url)

async function signUp(username: string, fields: Record<string, string> = {}, reader: TestBrowser = browser()) {
  const page = await reader.visit('/users/sign_up')
  if (page.statusCode === 503) return page
  const email = `${username}@mail.example`
  return reader.submit({ username, email, password: PASSWORD, password_again: PASSWORD, ...fields }, '/users/sign_up')
}

async function signIn(username: string, password = PASSWORD) {
  const reader = browser()
  await reader.visit('/users/sign_in')
  return (await reader.submit({ username, password }, '/users/sign_in')).body
}

function link(): string {
  const pattern = /https:\/\/pod\.example(\/users\/confirm_email\S+)/
  return smtp.mails.flatMap(({ text }) => pattern.exec(text)?.[1] ?? []).at(-1) ?? 'no link'
}

async function confirm(path: string) {
  const reader = browser()
  await reader.visit(path)
  return reader.submit({})
}

const webfinger = async (name: string) =>
  (await opened.inject(`/.well-known/webfinger?resource=acct:${name}@pod.example`)).statusCode

describe('a sign-up with confirmation', () => {
  it('is where links to invitations of a pod that was taken over lead', async () => {
    expect((await opened.inject('/i/0123456789ab')).headers.location).toBe('/users/sign_up')
  })

  it('makes no person before the button of the link is pressed; the link works once', async () => {
    expect((await signUp('carol')).body).toContain('Check your e-mail')
    await runMails(opened.pod)
    expect(smtp.mails.map(({ to }) => to)).toEqual([['carol@mail.example']])
    const path = link()
    await browser().visit(path)
    await browser().visit(path)
    expect(await webfinger('carol')).toBe(404)
    expect(await signIn('carol')).toContain('is not open yet')
    expect(await signIn('carol', 'wrong horse battery')).toContain('is wrong')

    expect((await confirm(path)).statusCode).toBe(200)
    expect(await webfinger('carol')).toBe(200)
    expect(await signIn('carol')).not.toContain('is wrong')
    expect((await confirm(path)).body).toContain('no longer valid')
    expect(await opened.pod.db('users').where({ username: 'carol' }).first('email', 'emailConfirmedAt')).toEqual({
      email: 'carol@mail.example',
      emailConfirmedAt: expect.any(Date),
    })
  })

  it('does not reveal that an address has an account', async () => {
    const fresh = await signUp('dan')
    const used = await signUp('erin', { email: 'ALICE@mail.example' })
    expect([used.statusCode, used.body]).toEqual([fresh.statusCode, fresh.body])
    await runMails(opened.pod)
    const mail = smtp.mails.find(({ to }) => to.includes('ALICE@mail.example'))
    expect(mail?.headers['subject']).toContain('You already have an account')
    expect(mail?.text).not.toContain('http')
    expect(await webfinger('erin')).toBe(404)
  })

  it('has the same answer and number of statements for a used address and a new one (case 4)', async () => {
    await signUp('warm')
    const answers = []
    for (const [name, email] of [
      ['nora', 'nora@mail.example'],
      ['omar', 'Alice@Mail.example'],
    ] as const) {
      const reader = browser()
      let answer = await reader.visit('/users/sign_up')
      const fields = { username: name, email, password: PASSWORD, password_again: PASSWORD }
      const statements = await statementsDuring(async () => {
        answer = await reader.submit(fields, '/users/sign_up')
      })
      answers.push([answer.statusCode, answer.body, statements])
    }
    expect(answers[1]).toEqual(answers[0])
  })

  it('has the same response to a sign-in as a locked account and an unknown name, with as many statements', async () => {
    await createUser(opened.pod, { username: 'locked', password: PASSWORD })
    await opened.pod.db('users').where({ username: 'locked' }).update({ lockedAt: opened.pod.db.fn.now() })
    await signUp('pending')
    await signIn('alice', 'warm horse battery')
    const answers = new Map<string, unknown>()
    for (const [username, password] of [
      ['unknown', PASSWORD],
      ['alice', 'wrong horse battery'],
      ['alice@mail.example', 'wrong horse battery'],
      ['unknown@mail.example', PASSWORD],
      ['locked', PASSWORD],
      ['pending', 'wrong horse battery'],
    ] as const) {
      const reader = browser()
      let answer = await reader.visit('/users/sign_in')
      const statements = await statementsDuring(async () => {
        answer = await reader.submit({ username, password }, '/users/sign_in')
      })
      const body = answer.body.replaceAll(username, 'NAME').replace(/name="form" value="[^"]*"/, '')
      answers.set(username, [answer.statusCode, body, statements])
    }
    for (const answer of answers.values()) expect(answer).toEqual(answers.get('unknown'))
  })

  it('reserves the name once, for three days', async () => {
    const answers = await Promise.all([signUp('frank'), signUp('frank')])
    expect(answers.map(({ statusCode }) => statusCode).toSorted()).toEqual([200, 422])
    expect(await opened.pod.db('pending_sign_ups').where({ username: 'frank' })).toHaveLength(1)
    await expect(createUser(opened.pod, { username: 'frank', password: PASSWORD })).rejects.toThrow('is taken')

    await opened.pod.db('pending_sign_ups').update({ expiresAt: opened.pod.db.raw(`now() - interval '1 second'`) })
    await runMails(opened.pod)
    expect(smtp.mails).toEqual([])
    expect((await signUp('frank')).statusCode).toBe(200)
  })

  it('refuses programs: a filled hidden field, a form that is sent at once, or a forged time', async () => {
    for (const fields of [{ website: 'x' }, { form_time: '' }, { form_time: `${Date.now() - 10_000}.x` }]) {
      expect((await signUp('gina', fields)).statusCode).toBe(422)
    }
    const reader = browser()
    const page = await reader.visit('/users/sign_up')
    const time = /name="form_time" value="([^"]*)"/.exec(page.body)?.[1] ?? ''
    expect((await signUp('gina', { form_time: time })).statusCode).toBe(422)
    expect(await opened.pod.db('pending_sign_ups')).toEqual([])
  })

  it('refuses common passwords, the own name and listed mail domains, with the reason', async () => {
    const expectRefusal = async (fields: Record<string, string>) => {
      const { statusCode, body } = await signUp('harriet.smith', {
        ...fields,
        password_again: fields['password'] ?? PASSWORD,
      })
      expect(body).toContain('value="harriet.smith"')
      expect(body).not.toContain(PASSWORD)
      return [statusCode, /<span class="wrong"[^>]*>([^<]*)/.exec(body)?.[1]]
    }
    expect(await expectRefusal({ password: 'password12' })).toEqual([
      422,
      'This password is too common. Choose another one.',
    ])
    expect(await expectRefusal({ password: 'harriet.smith' })).toEqual([422, expect.stringContaining('not your name')])
    expect(await expectRefusal({ password: 'harriet.smith@mail.example' })).toEqual([
      422,
      expect.stringContaining('not your'),
    ])
    expect(await expectRefusal({ email: 'a@sub.trash.example' })).toEqual([
      422,
      expect.stringContaining('mail provider'),
    ])
    expect(await expectRefusal({ email: 'nothing' })).toEqual([422, expect.stringContaining('e-mail address')])
  })

  it('refuses mailboxes by rule in every spelling, domains with subdomains, and the hosts that take their mail', async () => {
    const rule = (kind: 'email' | 'domain', value: string) =>
      addMailRule(opened.pod, COMMAND_ACTOR, { kind, value }, { reason: 'Spam' })
    await rule('email', 'u.ser@gmail.com')
    await rule('email', 'da.na@mail.example')
    await rule('domain', 'wave.example')
    await rule('domain', 'mx.wave.test')
    const isRefused = async (username: string, email: string) => (await signUp(username, { email })).statusCode === 422
    expect(await isRefused('harriet', 'user+1@gmail.com')).toBe(true)
    expect(await isRefused('harriet', 'U.S.E.R@googlemail.com')).toBe(true)
    expect(await isRefused('harriet', 'Da.Na+x@mail.example')).toBe(true)
    expect(await isRefused('harriet', 'dana@mail.example')).toBe(false)
    expect(await isRefused('imogen', 'a@sub.wave.example')).toBe(true)
    expect(await isRefused('imogen', 'a@notwave.example')).toBe(false)
    expect(await isRefused('jasper', `a@${HOSTED}`)).toBe(true)
    expect(await opened.pod.db('mail_rules').orderBy('id').pluck('hits')).toEqual([2, 1, 1, 1])
    await opened.pod.db('mail_rules').update({ until: new Date(Date.now() - 1_000) })
    expect(await isRefused('jasper', `a@${HOSTED}`)).toBe(false)
    await opened.pod.db('mail_rules').delete()
  })

  it('needs a decision by a rule, or has no form for a network', async () => {
    const rule = (cidr: string, severity: 'sign_up_block' | 'sign_up_approval') =>
      addIpRule(opened.pod, COMMAND_ACTOR, { cidr, severity }, { reason: 'Spam' })
    const { rule: approval } = await rule('198.51.100.0/24', 'sign_up_approval')
    await rule('203.0.113.7', 'sign_up_block')
    const { rule: mail } = await addMailRule(
      opened.pod,
      COMMAND_ACTOR,
      { kind: 'domain', value: 'slow.example', severity: 'approve' },
      { reason: 'Spam' },
    )
    const from = (ip: string) => openBrowser(opened.app, opened.pod.config.url, ip)
    await signUp('kate', { email: 'kate@slow.example' }, from('198.51.100.9'))
    const row = await opened.pod.db('pending_sign_ups').where({ username: 'kate' }).first()
    expect(row).toMatchObject({
      needsApproval: true,
      rules: [`mail_rule ${mail.id}`, `ip_rule ${approval.id}`],
    })
    expect(await opened.pod.db('sign_up_addresses').where({ pendingId: row.id }).first('ip')).toEqual({
      ip: '198.51.100.9',
    })
    await signUp('liam', {}, from('198.51.99.9'))
    expect(await opened.pod.db('pending_sign_ups').where({ username: 'liam' }).first()).toMatchObject({
      needsApproval: false,
      rules: [],
    })
    const blocked = from('203.0.113.7')
    expect((await blocked.visit('/users/sign_up')).statusCode).toBe(403)
    expect(blocked.page.body).not.toContain('name="username"')
    await opened.pod.db('ip_rules').delete()
    await opened.pod.db('mail_rules').delete()
  })

  it('has five sign-ups of a network in a day', async () => {
    const address = '203.0.113.9'
    const names = Array.from({ length: 8 }, (_, n) => `n${n}`)
    const visitors = names.map((name) => signUp(name, {}, openBrowser(opened.app, opened.pod.config.url, address)))
    const statuses = (await Promise.all(visitors)).map(({ statusCode }) => statusCode)
    expect(statuses.filter((status) => status === 200)).toHaveLength(5)
    const sixth = await signUp('n9', {}, openBrowser(opened.app, opened.pod.config.url, address))
    expect([sixth.statusCode, sixth.headers['retry-after']]).toEqual([503, '3600'])
  })
})

describe('a sign-up with approval', () => {
  let moderated: TestPod
  beforeAll(async () => {
    moderated = await buildPod({
      environment: {
        SMTP_URL: smtp.url,
        MAIL_FROM: 'pod@pod.example',
        REGISTRATIONS: 'open',
        SIGN_UP_APPROVAL: 'on',
        SIGN_UP_BACKLOG: '2',
      },
    })
  })
  afterAll(() => moderated.close())

  const send = async (username: string, fields: Record<string, string> = {}, query = '') => {
    const reader = openBrowser(moderated.app, moderated.pod.config.url)
    await reader.visit(`/users/sign_up${query}`)
    const email = `${username}@mail.example`
    const typed = { username, email, password: PASSWORD, password_again: PASSWORD, ...fields }
    return reader.submit(typed, '/users/sign_up')
  }
  const idOf = async (username: string) =>
    (await moderated.pod.db('pending_sign_ups').where({ username }).first('id')).id
  const press = async () => {
    await runMails(moderated.pod)
    const reader = openBrowser(moderated.app, moderated.pod.config.url)
    await reader.visit(link())
    return reader.submit({})
  }

  it('needs a reason, opens with confirmation and decision in any order, and has mails for both decisions', async () => {
    expect((await send('ian')).body).toContain('why you want an account')
    expect((await send('ian', { reason: 'I sing.' })).body).toContain(
      'A moderator of this pod must approve your sign-up',
    )
    expect((await press()).body).toContain('A moderator of this pod must approve your sign-up')
    const third = openBrowser(moderated.app, moderated.pod.config.url)
    await third.visit('/users/sign_up')
    expect((await send('judy', { reason: 'Me too.' })).statusCode).toBe(200)
    const typed = { username: 'third', email: 'third@mail.example', password: PASSWORD, password_again: PASSWORD }
    for (const full of [await third.submit({ ...typed, reason: 'More.' }), await third.visit('/users/sign_up')]) {
      expect([full.statusCode, full.headers['retry-after']]).toEqual([503, '3600'])
      expect(full.body).not.toContain('name="username"')
    }

    expect(await approveSignUp(moderated.pod, COMMAND_ACTOR, await idOf('ian'), { reason: 'ok' })).toEqual({
      opened: true,
    })
    await runMails(moderated.pod)
    expect(
      smtp.mails.some(({ to, headers }) => to.includes('ian@mail.example') && headers['subject']?.includes('is open')),
    ).toBe(true)

    await press()
    await rejectSignUp(moderated.pod, COMMAND_ACTOR, await idOf('judy'), { reason: 'no', answer: 'We are full.' })
    await runMails(moderated.pod)
    expect(smtp.mails.at(-1)).toMatchObject({
      to: ['judy@mail.example'],
      text: expect.stringContaining('We are full.'),
    })
    expect((await send('judy', { reason: 'Again.' })).statusCode).toBe(200)
  })

  it('opens by the decision if the mailbox is confirmed while a moderator decides', async () => {
    await moderated.pod.db('pending_sign_ups').delete()
    await send('lea', { reason: 'I sing.' })
    await runMails(moderated.pod)
    const reader = openBrowser(moderated.app, moderated.pod.config.url)
    await reader.visit(link())
    const id = await idOf('lea')
    const [{ opened: isOpen }, page] = await Promise.all([
      approveSignUp(moderated.pod, COMMAND_ACTOR, id, { reason: 'ok' }),
      reader.submit({}),
    ])
    expect(isOpen).not.toBe(page.body.includes('Your account is open'))
    expect(await moderated.pod.db('users').where({ username: 'lea' }).first('email')).toEqual({
      email: 'lea@mail.example',
    })
  })

  it('is skipped with an invitation', async () => {
    const expiresAt = new Date(Date.now() + 86_400_000)
    const { code } = await insertInvitation(moderated.pod.db, { note: null, expiresAt, uses: 1, createdBy: 'command' })
    expect((await send('kim', {}, `?invitation=${code}`)).body).toContain('Check your e-mail')
    expect((await press()).body).toContain('Your account is open')
    expect(await moderated.pod.db('invitations').first('used')).toEqual({ used: 1 })
  })
})
