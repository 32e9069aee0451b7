import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { checkAttendance } from '../../src/domain/accounts/sign-ups/unattended.js'
import { composeAccountMail } from '../../src/domain/mail/account-mails.js'
import { changeMailPreferences } from '../../src/domain/mail/mail-settings.js'
import { enqueueDigests } from '../../src/domain/mail/notification-mails.js'
import { unsubscribeUrl } from '../../src/domain/mail/unsubscribe.js'
import { repeatTransactions } from '../support/databases/repeated-transactions.js'
import { confirmMailbox, runMails } from '../support/mail/mail-runs.js'
import { startSmtpServer, type TestSmtpServer } from '../support/mail/smtp-server.js'
import type { TestPerson } from '../support/people/local-users.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'
import { giveRole } from '../support/pods/console-pod.js'

let smtp: TestSmtpServer
let opened: TestPod
let alice: TestPerson
let bob: TestPerson
let aliceId: number

beforeAll(async () => {
  smtp = await startSmtpServer()
  opened = await buildPod({ environment: { SMTP_URL: smtp.url, MAIL_FROM: 'pod@pod.example', MAIL_LIMIT: '1000' } })
  const people = await opened.people('alice', 'bob')
  alice = people.alice
  bob = people.bob
  aliceId = await confirmMailbox(opened.pod, 'alice')
  await opened.pod.db('users').where({ id: aliceId }).update({ timeZone: 'America/New_York' })
})
afterAll(async () => {
  await opened.close()
  await smtp.close()
})
beforeEach(async () => {
  for (const table of ['outbox', 'mails', 'mail_preferences', 'notifications']) await opened.pod.db(table).delete()
  smtp.mails.length = 0
})

async function post(body: string, fields: object = { public: true }): Promise<string> {
  const answer = await alice.post('/api/v1/posts', { body, ...fields })
  expect(answer.statusCode).toBe(200)
  return answer.json().guid
}

const comment = (guid: string, body: string, by = bob) => by.post(`/api/v1/posts/${guid}/comments`, { body })
const comments = (delivery: string) =>
  changeMailPreferences(opened.pod, aliceId, { kinds: { comment_on_post: delivery } })

describe('a notice at once', () => {
  it('is one mail with the header of the thread while the notification is unread', async () => {
    await comments('immediate')
    const guid = await post('A post')
    await comment(guid, 'A **public** answer')
    const { rows } = await opened.pod.db.raw(
      `select round(extract(epoch from sweep_at - now()))::integer as seconds from outbox where queue = 'mail'`,
    )
    expect(rows[0].seconds).toBeGreaterThan(100)
    await runMails(opened.pod)
    expect(smtp.mails).toMatchObject([
      {
        to: ['alice@mail.example'],
        headers: { subject: 'bob@pod.example commented on your post', 'in-reply-to': `<${guid}@pod.example>` },
        text: expect.stringContaining('A public answer'),
      },
    ])
    for (const text of ['one', 'two', 'three']) await comment(guid, text)
    await runMails(opened.pod)
    expect(smtp.mails).toHaveLength(1)
  })

  it('is not sent for notifications that were read, turned off, muted, or caused by a blocked person', async () => {
    await comments('immediate')
    const read = await post('Read')
    await comment(read, 'x')
    await opened.pod.db('notifications').update({ read: true })
    await runMails(opened.pod)

    await comment(await post('Off'), 'x')
    await changeMailPreferences(opened.pod, aliceId, { enabled: false })
    await runMails(opened.pod)
    await changeMailPreferences(opened.pod, aliceId, { enabled: true })

    await comment(await post('Blocked'), 'x')
    await alice.post(`/api/v1/users/${bob.account.guid}/block`)
    await runMails(opened.pod)
    await alice.delete(`/api/v1/users/${bob.account.guid}/block`)
    expect(smtp.mails).toEqual([])
  })

  it('contains no private text: comments, messages and subjects', async () => {
    await comments('immediate')
    await alice.post(`/api/v1/aspects`, { name: 'Close' })
    const [aspect] = (await alice.get('/api/v1/aspects')).json()
    await alice.post(`/api/v1/aspects/${aspect.id}/contacts`, { person_guid: bob.account.guid })
    const guid = await post('A private post', { public: false, aspects: [aspect.id] })
    await comment(guid, 'sEcReT')
    await bob.post(`/api/v1/aspects/${(await bob.get('/api/v1/aspects')).json()[0].id}/contacts`, {
      person_guid: alice.account.guid,
    })
    const begun = await bob.post('/api/v1/conversations', {
      subject: 'sEcReT2',
      body: 'sEcReT3',
      recipients: [alice.account.guid],
    })
    expect(begun.statusCode).toBeLessThan(300)
    await runMails(opened.pod)
    expect(smtp.mails.map(({ headers }) => headers['subject'])).toEqual(
      expect.arrayContaining(['bob@pod.example commented on your post', 'bob@pod.example sent you a message']),
    )
    for (const { source, text, html } of smtp.mails) expect(source + text + html).not.toContain('sEcReT')

    const { guid: conversation } = begun.json()
    const sent = smtp.mails.length
    await bob.post(`/api/v1/conversations/${conversation}/messages`, { body: 'more' })
    await runMails(opened.pod)
    expect(smtp.mails).toHaveLength(sent)
  })

  it('an immediate mail about a conversation does not name people whom the user blocks', async () => {
    const { dora } = await opened.people('dora')
    const share = async (by: TestPerson, person: TestPerson) => {
      const [aspect] = (await by.get('/api/v1/aspects')).json()
      await by.post(`/api/v1/aspects/${aspect.id}/contacts`, { person_guid: person.account.guid })
    }
    for (const person of [alice, dora]) {
      await share(bob, person)
      await share(person, bob)
    }
    await runMails(opened.pod)
    smtp.mails.length = 0
    const begun = await bob.post('/api/v1/conversations', {
      subject: 'A walk',
      body: 'Who comes?',
      recipients: [alice.account.guid, dora.account.guid],
    })
    expect(begun.statusCode).toBeLessThan(300)
    await dora.post(`/api/v1/conversations/${begun.json().guid}/messages`, { body: 'Me' })
    await alice.post(`/api/v1/users/${dora.account.guid}/block`)
    await runMails(opened.pod)
    expect(smtp.mails.map(({ headers }) => headers['subject'])).toEqual(['bob@pod.example sent you a message'])
  })

  it('has one recipient with any characters in the name of a person', async () => {
    await comments('immediate')
    await opened.pod.db('people').where({ guid: bob.account.guid }).update({ name: 'x\r\nBcc: v@example.org\u202e' })
    await comment(await post('Names'), 'hello')
    await runMails(opened.pod)
    await opened.pod.db('people').where({ guid: bob.account.guid }).update({ name: '' })
    expect(smtp.mails).toMatchObject([
      { to: ['alice@mail.example'], headers: { subject: 'x Bcc: v@example.org commented on your post' } },
    ])
    expect(smtp.mails[0]?.headers).not.toHaveProperty('bcc')
  })
})

describe('the daily digest', () => {
  async function likePosts(count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const guid = await post(`Post ${index}`)
      await bob.post(`/api/v1/posts/${guid}/likes`)
    }
  }
  const at = (time: string) => enqueueDigests({ ...opened.pod, now: () => new Date(time) })
  const forget = () =>
    opened.pod
      .db('users')
      .where({ id: aliceId })
      .update({ digestOn: null, digestAt: opened.pod.db.raw(`now() - interval '1 hour'`) })

  it('is one mail at the local hour, with 30 lines and the number of further ones, also with two workers', async () => {
    await forget()
    await likePosts(40)
    await opened.pod.db('outbox').delete()
    expect(await at('2026-07-01T11:59:00Z')).toBe(0)
    const counts = await Promise.all([at('2026-07-01T12:01:00Z'), at('2026-07-01T12:01:00Z')])
    expect(counts.toSorted()).toEqual([0, 1])
    await runMails(opened.pod)
    expect(smtp.mails).toHaveLength(1)
    expect(smtp.mails[0]?.text.match(/liked your post/g)).toHaveLength(30)
    expect(smtp.mails[0]?.text).toContain('10 more')

    await at('2026-07-02T12:01:00Z')
    await runMails(opened.pod)
    expect(smtp.mails).toHaveLength(1)
  })

  it('is counted once when its transaction is repeated', async () => {
    await forget()
    await likePosts(1)
    const pod = { ...opened.pod, db: repeatTransactions(opened.pod.db), now: () => new Date('2026-07-03T12:01:00Z') }
    expect(await enqueueDigests(pod)).toBe(1)
  })

  it('is sent once on the days on which the clock changes', async () => {
    for (const [early, due, later] of [
      ['2026-03-08T11:59:00Z', '2026-03-08T12:01:00Z', '2026-03-08T13:01:00Z'],
      ['2026-11-01T12:59:00Z', '2026-11-01T13:01:00Z', '2026-11-01T14:01:00Z'],
    ] as const) {
      await forget()
      await likePosts(1)
      expect([await at(early), await at(due), await at(later)]).toEqual([0, 1, 0])
    }
  })
})

describe('the link to unsubscribe', () => {
  it('ends the kind with a POST without cookie; a GET changes nothing; the header is one line', async () => {
    await comments('immediate')
    await comment(await post('Links'), 'hello')
    await runMails(opened.pod)
    const source = smtp.mails[0]?.source ?? ''
    expect(source).toMatch(/^List-Unsubscribe: <https:\/\/pod\.example\/m\/[^>\s]{1,60}>\r$/m)
    expect(source).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n')
    const path = /<https:\/\/pod\.example(\/m\/[^>]+)>/.exec(source)?.[1] ?? ''
    const preference = () =>
      opened.pod.db('mail_preferences').where({ userId: aliceId, kind: 'comment_on_post' }).first('delivery')

    expect((await opened.inject(path)).statusCode).toBe(200)
    expect(await preference()).toEqual({ delivery: 'immediate' })
    const sent = await opened.inject({
      method: 'POST',
      url: path,
      payload: 'List-Unsubscribe=One-Click',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(sent.statusCode).toBe(200)
    expect(await preference()).toEqual({ delivery: 'never' })
    expect((await opened.inject({ method: 'POST', url: `${path.slice(0, -1)}-` })).statusCode).toBe(404)
  })

  it('in a digest ends all daily kinds, until the address changes', async () => {
    const url = unsubscribeUrl(opened.pod, { id: aliceId, email: 'alice@mail.example' }, 'digest') ?? ''
    const path = new URL(url).pathname
    expect((await opened.inject({ method: 'POST', url: path })).statusCode).toBe(200)
    expect(await opened.pod.db('mail_preferences').where({ userId: aliceId })).toHaveLength(6)
    await opened.pod.db('users').where({ id: aliceId }).update({ email: 'other@mail.example' })
    expect((await opened.inject(path)).statusCode).toBe(404)
    await opened.pod.db('users').where({ id: aliceId }).update({ email: 'alice@mail.example' })
  })
})

it('a notice about reports has numbers by type and a link, no text, and does not go to the reported moderator', async () => {
  await opened.people('carol')
  await opened.pod.db('users').where({ username: 'carol' }).update({ role: 'moderator' })
  await confirmMailbox(opened.pod, 'carol')
  const guid = await post('Reported sEcReT')
  await bob.post(`/api/v1/posts/${guid}/report`, { reason: 'sEcReT reason' })
  await runMails(opened.pod)
  expect(smtp.mails).toMatchObject([
    {
      to: ['carol@mail.example'],
      text: expect.stringMatching(/A new report waits[\s\S]*- Posts: 1\s[\s\S]*\/admin\/reports\s/),
    },
  ])
  expect(smtp.mails[0]?.source).not.toContain('sEcReT')
})

describe('reports of a minute', () => {
  const first = '5 new reports on The pod under test'
  const sum = '6 new reports on The pod under test'
  const reportBy = (by: TestPerson, guid: string) => by.post(`/api/v1/posts/${guid}/report`, { reason: 'Spam' })
  const listMails = () => smtp.mails.map(({ to, headers }) => `${to[0]}: ${headers['subject']}`).sort()
  beforeAll(async () => {
    await opened.people('carol', 'mia')
    await opened.pod.db('users').whereIn('username', ['carol', 'mia']).update({ role: 'moderator' })
    for (const name of ['carol', 'mia']) await confirmMailbox(opened.pod, name)
  })
  beforeEach(() => opened.pod.db('moderation_cases').delete())

  it('are one mail to each moderator; later ones are one mail with their number', async () => {
    const reporters = Object.values(await opened.people('bob', 'dora', 'emil', 'fay'))
    const posts = await Promise.all(Array.from({ length: 6 }, (_, number) => post(`Spam ${number}`)))
    const reportAll = (guids: readonly string[]) =>
      Promise.all(guids.flatMap((guid) => reporters.map((by) => reportBy(by, guid))))

    const answers = await reportAll(posts.slice(0, 5))
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array.from({ length: 20 }, () => 204))
    await runMails(opened.pod)
    const ofFirst = [`carol@mail.example: ${first}`, `mia@mail.example: ${first}`]
    expect(listMails()).toEqual(ofFirst)

    await reportAll(posts.slice(5))
    const waiting = await opened.pod.db('outbox').where({ queue: 'mail' })
    expect(waiting.map(({ sweepAt }) => sweepAt > Date.now() + 500_000)).toEqual([true, true])
    await runMails(opened.pod)
    expect(listMails()).toEqual([...ofFirst, `carol@mail.example: ${sum}`, `mia@mail.example: ${sum}`].sort())
  })

  it('that arrive while a mail is being sent are in another one', async () => {
    const { bob: one, dora: other } = await opened.people('bob', 'dora')
    const posts = [await post('Spam one'), await post('Spam two')] as const
    await reportBy(one, posts[0])
    smtp.whileReceiving(() => reportBy(other, posts[1]))

    await runMails(opened.pod)

    // The mail to Mia was composed after the second report.
    const both = '2 new reports on The pod under test'
    expect(listMails().filter((mail) => mail.endsWith(both))).toEqual([
      `carol@mail.example: ${both}`,
      `mia@mail.example: ${both}`,
    ])
    expect(listMails()).toHaveLength(3)
  })

  it('cause one mail, also if their transactions do not see each other', async () => {
    const { bob: one, dora: other } = await opened.people('bob', 'dora')
    const posts = [await post('Spam one'), await post('Spam two')] as const
    const { db } = opened.pod
    const held = await db.transaction()
    await held.raw('lock table mails in share mode') // both may read it, none may insert
    const reports = Promise.all([reportBy(one, posts[0]), reportBy(other, posts[1])])
    await vi.waitFor(async () => {
      const waiting = await db('pg_stat_activity')
        .whereRaw('datname = current_database()')
        .where({ waitEventType: 'Lock' })
      expect(waiting).toHaveLength(2)
    })
    await held.commit()
    expect((await reports).map(({ statusCode }) => statusCode)).toEqual([204, 204])

    expect(await db('mails').where({ kind: 'someone_reported' })).toHaveLength(2)
  })
})

it('a mail has the day of a closing in its own language, even if the setting is not a language tag', async () => {
  const closeAt = new Date('2030-05-06T12:00:00Z')
  for (const [language, day] of [
    ['de_formal', '6. Mai 2030'],
    ['art-nvi', 'May 6, 2030'],
  ] as const) {
    await opened.pod.db('users').where({ id: aliceId }).update({ language, closeAt, closingBy: 'owner' })
    const mail = await composeAccountMail(opened.pod, { kind: 'account_closing', userId: aliceId, mailId: 1 })
    expect(mail?.text).toContain(day)
  }
  await opened.pod.db('users').where({ id: aliceId }).update({ language: 'en', closeAt: null, closingBy: null })
})

describe('a pod that no moderator attends', () => {
  it('writes one mail to each admin when sign-ups begin to need approval, and none to others', async () => {
    const { pod } = opened
    await opened.people('adm', 'mod')
    for (const name of ['adm', 'mod']) await confirmMailbox(pod, name)
    await giveRole(pod, 'adm', 'admin')
    await giveRole(pod, 'mod', 'moderator')
    const unattended = {
      ...pod,
      config: { ...pod.config, registrations: 'open' as const, unattendedDays: 7 },
      now: () => new Date(Date.now() + 8 * 86_400_000),
    }
    await Promise.all([checkAttendance(unattended), checkAttendance(unattended)])
    await runMails(pod)
    await checkAttendance({ ...unattended, now: () => new Date(Date.now() + 30 * 86_400_000) })
    await runMails(pod)

    expect(smtp.mails).toMatchObject([{ to: ['adm@mail.example'], text: expect.stringContaining('/admin/sign-ups') }])
  })
})
