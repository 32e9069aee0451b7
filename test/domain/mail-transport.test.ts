import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { bounceAddress, recordBounce } from '../../src/domain/mail/bounces.js'
import { enqueueAccountMail } from '../../src/domain/mail/enqueue-mail.js'
import { findMailStatus, resumeMail, testMail } from '../../src/domain/mail/mail-operations.js'
import { readMailbox } from '../../src/domain/mail/mailboxes.js'
import { sendMail } from '../../src/domain/mail/send-mail.js'
import { readSmtpFault } from '../../src/domain/mail/smtp/smtp-faults.js'
import { readSmtpUrl } from '../../src/domain/mail/smtp/smtp-options.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import type { MailData } from '../../src/jobs/definitions.js'
import { loadJob } from '../../src/jobs/outbox/load-job.js'
import { inRequestTransaction } from '../../src/persistence/database/transactions.js'
import type { Services } from '../../src/services/services.js'
import { mailHandlers } from '../../workers/handlers/mail.js'
import { maintenanceHandlers } from '../../workers/handlers/maintenance.js'
import { sweep } from '../../workers/sweeper.js'
import { openRecordedLog } from '../support/assertions/recorded-log.js'
import { confirmMailbox, runMails } from '../support/mail/mail-runs.js'
import { startSmtpServer, type TestSmtpServer } from '../support/mail/smtp-server.js'
import { addLocalUser } from '../support/people/local-users.js'
import { buildPod, type PodWithoutWeb } from '../support/pods/build-pod.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

let smtp: TestSmtpServer
let opened: PodWithoutWeb
let pod: Services
let alice: number
const log = openRecordedLog()

beforeAll(async () => {
  smtp = await startSmtpServer({ auth: true })
  opened = await buildPod({
    web: false,
    log: log.log,
    environment: {
      SMTP_URL: smtp.url,
      MAIL_FROM: 'pod@pod.example',
      MAIL_BOUNCE_ADDRESS: 'bounce@pod.example',
      MAIL_LIMIT: '1000',
    },
  })
  pod = opened.pod
  await addLocalUser(pod, 'alice')
  alice = await confirmMailbox(pod, 'alice')
})
afterAll(async () => {
  await opened.close()
  await smtp.close()
})
beforeEach(async () => {
  for (const step of ['auth', 'sender', 'recipient'] as const) smtp.refuse(step, undefined)
  smtp.mails.length = 0
  await pod.db('outbox').delete()
  await pod.db('mails').delete()
  await pod.db('mail_faults').delete()
  await pod.db('mail_transport').update({ failingSince: null, probeAt: null, sent: 0 })
  await pod.db('users').update({ mailState: 'ok' })
})

async function mailTo(...ids: readonly number[]): Promise<void> {
  await inRequestTransaction(pod, async (transaction) => {
    for (const id of ids) await enqueueAccountMail(pod, transaction, 'password_changed', id)
  })
}

async function makeDue(): Promise<void> {
  await pod.db('outbox').update({ sweepAt: pod.db.fn.now() })
  await pod.db('mail_transport').whereNotNull('failingSince').update({ probeAt: pod.db.fn.now() })
}

describe('the mail transport', () => {
  it('sends a mail with two parts, a fixed Message-ID and a tagged envelope sender', async () => {
    await mailTo(alice)
    const [{ data }] = await pod.db('outbox').where({ queue: 'mail' })
    expect(Object.keys(data).toSorted()).toEqual(['kind', 'mailId', 'userId'])

    expect(await runMails(pod)).toEqual(['done'])

    expect(smtp.mails).toMatchObject([
      {
        from: bounceAddress(pod, alice),
        to: ['alice@mail.example'],
        headers: {
          from: 'The pod under test <pod@pod.example>',
          'message-id': `<mail-${data.mailId}@pod.example>`,
          'auto-submitted': 'auto-generated',
          subject: 'The password of your account on The pod under test has changed',
        },
        text: expect.stringContaining('alice@pod.example was changed'),
        html: expect.stringContaining('alice@pod.example was changed'),
      },
    ])
    expect(smtp.mails[0]?.headers).not.toHaveProperty('list-unsubscribe')
    expect(log.lines.filter((line) => JSON.stringify(line).includes('alice@mail.example'))).toEqual([])
  })

  it('stops notices to a mailbox that does not exist, and sends it one account mail a day', async () => {
    smtp.refuse('recipient', { code: 550, message: '5.1.1 no such user' })
    await mailTo(alice)
    await runMails(pod)
    expect(await pod.db('users').where({ id: alice }).first('mailState')).toEqual({ mailState: 'suppressed' })

    smtp.refuse('recipient', undefined)
    await mailTo(alice)
    await runMails(pod)
    await mailTo(alice)
    await runMails(pod)
    expect(smtp.mails).toHaveLength(1)
  })

  it('suppresses a mailbox after three other permanent faults in 14 days', async () => {
    smtp.refuse('recipient', { code: 552, message: '5.2.2 mailbox full' })
    const states = []
    for (const _ of [1, 2, 3]) {
      await mailTo(alice)
      await runMails(pod)
      states.push((await pod.db('users').where({ id: alice }).first('mailState')).mailState)
    }
    expect(states).toEqual(['bouncing', 'bouncing', 'suppressed'])
  })

  it('suppresses no mailbox while the server refuses the pod, probes with one mail, and sends all when it accepts', async () => {
    await addLocalUser(pod, 'bob')
    const bob = await confirmMailbox(pod, 'bob')
    smtp.refuse('auth', { code: 535, message: '5.7.8 wrong password' })
    await mailTo(alice, bob)

    expect(await runMails(pod)).toEqual(['postponed', 'postponed'])
    expect(await findMailStatus(pod)).toMatchObject({
      fault: 'auth',
      code: 535,
      waiting: 2,
      usersSuppressed: 0,
      usersBouncing: 0,
    })
    await makeDue()
    expect(await runMails(pod)).toEqual(['postponed', 'postponed'])

    smtp.refuse('auth', undefined)
    await resumeMail(pod, COMMAND_ACTOR)
    await runMails(pod)
    expect(smtp.mails.map(({ to }) => to[0]).toSorted()).toEqual(['alice@mail.example', 'bob@mail.example'])
    expect(await findMailStatus(pod)).toMatchObject({ failingSince: null, waiting: 0 })
  })

  it('tries again after 1, 5 and 15 minutes, 1, 4 and 12 hours; then the mail is a dead letter', async () => {
    smtp.refuse('recipient', { code: 451, message: '4.3.0 try later' })
    await mailTo(alice)
    const delays = []
    for (const _ of Array.from({ length: 6 })) {
      expect(await runMails(pod)).toEqual(['postponed'])
      const { rows } = await pod.db.raw(
        'select round(extract(epoch from sweep_at - now()) / 60)::integer as minutes from outbox',
      )
      delays.push(rows[0].minutes)
    }
    expect(delays).toEqual([1, 5, 15, 60, 240, 720])
    expect(await runMails(pod)).toEqual(['dead: mail_unsent'])
  })

  it('sends a mail again with the same Message-ID if the worker died before it noted the sending', async () => {
    await mailTo(alice)
    const [{ id }] = await pod.db('outbox')
    const work = await loadJob(pod.db, { outboxId: id })
    const dying = { ...work, data: work?.data as MailData, finish: () => Promise.reject(new Error('killed')) }
    await expect(sendMail(pod, { payload: undefined, acceptedAt: undefined, ...dying })).rejects.toThrow('killed')

    await runMails(pod)
    const sent = smtp.mails.map(({ headers }) => headers['message-id'])
    expect(sent).toHaveLength(2)
    expect(new Set(sent).size).toBe(1)
  })

  it('sends no more mails in a minute than MAIL_LIMIT', async () => {
    await mailTo(alice, alice, alice)
    const mail = pod.config.mail
    const slow = { ...pod, config: { ...pod.config, mail: mail && { ...mail, perMinute: 2 } } }
    expect(await runMails(slow)).toEqual(['done', 'done', 'postponed'])
  })

  it('sends over the queue, and later the jobs that the sweeper adds again', async () => {
    const workers = startTestWorkers(pod, {
      handlers: { mail: mailHandlers, maintenance: maintenanceHandlers },
      queues: ['mail'],
    })
    smtp.refuse('recipient', { code: 451, message: '4.3.0 try later' })
    onTestFinished(() => workers.close())
    await mailTo(alice)
    await vi.waitFor(async () => expect(await pod.db('mails').first('attempts')).toEqual({ attempts: 1 }))
    smtp.refuse('recipient', undefined)
    // The first job may not have ended yet, and then postpones its row after this; the next sweep adds the second job.
    await vi.waitFor(async () => {
      await makeDue()
      await sweep(pod)
      expect(smtp.mails).toHaveLength(1)
    })
    await untilIdle(pod, undefined, ['mail'])
    expect(smtp.mails).toHaveLength(1)
  })
})

describe('a status notification', () => {
  const notification = (to: string, action: string) =>
    `Return-Path: <>\nTo: ${to}\nContent-Type: multipart/report\n\nAction: ${action}\nStatus: 5.1.1\n`

  it('of a failure suppresses the mailbox; a wrong MAC or a delay changes nothing', async () => {
    const address = bounceAddress(pod, alice) ?? ''
    const wrong = address.replace(/.@/, (end) => (end === '0@' ? '1@' : '0@'))
    expect(await recordBounce(pod, notification(wrong, 'failed'))).toMatchObject({ ignored: 'wrong_mac' })
    expect(await recordBounce(pod, notification(address, 'delayed'))).toMatchObject({ ignored: 'no_failure' })
    expect(await recordBounce(pod, 'Subject: Out of office\n\nI am away.')).toMatchObject({ ignored: 'no_address' })
    expect(await pod.db('users').where({ id: alice }).first('mailState')).toEqual({ mailState: 'ok' })

    expect(await recordBounce(pod, notification(address, 'failed'))).toMatchObject({
      username: 'alice',
      state: 'suppressed',
    })
  })
})

describe('pod mail test', () => {
  it('names each step', async () => {
    const steps = await testMail(pod, 'operator@mail.example')
    expect(steps.map(({ step, ok }) => [step, ok])).toEqual(
      ['name', 'connection', 'certificate', 'auth', 'sending'].map((step) => [step, true]),
    )
    expect(smtp.mails).toHaveLength(1)

    const isolated = { ...pod, config: { ...pod.config, isolated: true } }
    await expect(testMail(isolated, 'operator@mail.example')).rejects.toThrow('isolated')
    expect(smtp.mails).toHaveLength(1)
  })

  it('sends no credentials to a server of another name that offers no STARTTLS', async () => {
    await using plain = await startSmtpServer({ auth: true })
    const mail = pod.config.mail
    // Leads to this machine, but is not a loopback address.
    const url = plain.url.replace('127.0.0.1', '0.0.0.0')
    const remote = { ...pod, config: { ...pod.config, mail: mail && { ...mail, url } } }
    const steps = await testMail(remote, 'operator@mail.example')
    expect(steps.at(-1)).toMatchObject({ ok: false, step: 'connection', advice: expect.stringContaining('TLS') })
    expect(plain.sawCredentials).toBe(false)
    expect(plain.mails).toEqual([])
  })
})

describe('SMTP_URL', () => {
  it('needs TLS except on this machine, or if the operator allows plain text', () => {
    expect(readSmtpUrl('smtp://mail.example')).toMatchObject({ port: 587, isSecure: false, requireTLS: true })
    expect(readSmtpUrl('smtps://mail.example')).toMatchObject({ port: 465, isSecure: true })
    expect(readSmtpUrl('smtp://127.0.0.1:25').requireTLS).toBe(false)
    expect(readSmtpUrl('smtp://mail.example?ignoreTLS=true').requireTLS).toBe(false)
    expect(readSmtpUrl('smtp://a%40b:c%2Fd@mail.example').auth).toEqual({ user: 'a@b', pass: 'c/d' })
  })
})

describe('the meaning of a failure', () => {
  it.each([
    [{ code: 'EENVELOPE', command: 'RCPT TO', responseCode: 550, response: '550 5.1.1 unknown' }, 'no_mailbox'],
    [{ code: 'EENVELOPE', command: 'RCPT TO', responseCode: 552, response: '552 5.2.2 full' }, 'refused'],
    [{ code: 'EENVELOPE', command: 'RCPT TO', responseCode: 550, response: '550 5.7.1 relaying denied' }, 'operator'],
    [{ code: 'EENVELOPE', command: 'MAIL FROM', responseCode: 553, response: '553 5.1.8 bad sender' }, 'operator'],
    [{ code: 'EMESSAGE', command: 'DATA', responseCode: 554, response: '554 5.6.0 malformed' }, 'refused'],
    [{ code: 'EAUTH', command: 'AUTH PLAIN', responseCode: 535, response: '535 5.7.8 no' }, 'operator'],
    [{ code: 'EAUTH', command: 'AUTH PLAIN', responseCode: 454, response: '454 4.7.0 later' }, 'temporary'],
    [{ code: 'ETLS', command: 'STARTTLS' }, 'operator'],
    [{ code: 'ESOCKET', originalCode: 'DEPTH_ZERO_SELF_SIGNED_CERT', command: 'CONN' }, 'operator'],
    [{ code: 'ESOCKET', originalCode: 'ECONNREFUSED', command: 'CONN' }, 'temporary'],
    [{ code: 'ETIMEDOUT', command: 'CONN' }, 'temporary'],
  ])('%j is %s', (error, kind) => {
    expect(readSmtpFault(error).kind).toBe(kind)
  })
})

describe('an e-mail address', () => {
  it('has a domain in lower-case ASCII; texts that could be several addresses or have control characters are refused', () => {
    expect(readMailbox(' Ann@Münster.Example ')).toBe('Ann@xn--mnster-3ya.example')
    for (const wrong of [
      '',
      'a',
      '@b.example',
      'a@b',
      'a@b@c.example',
      'a b@c.example',
      'a,b@c.example',
      'a@c.example\r\nBcc: v',
      `${'a'.repeat(65)}@b.example`,
    ]) {
      expect(() => readMailbox(wrong)).toThrow('e-mail address')
    }
  })
})
