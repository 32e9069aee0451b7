import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { closeInactiveAccounts } from '../../src/domain/accounts/closing/close-inactive.js'
import { INACTIVITY_LIMITS } from '../../src/domain/accounts/limits.js'
import { insertToken } from '../../src/persistence/accounts/issued-tokens.js'
import { openBrowser } from '../support/browser/scriptless-browser.js'
import { addUserRow } from '../support/databases/rows.js'
import { confirmMailbox, runMails } from '../support/mail/mail-runs.js'
import { startSmtpServer, type TestSmtpServer } from '../support/mail/smtp-server.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

const DAYS = 100
const DAY_MS = 86_400_000
let smtp: TestSmtpServer
let opened: TestPod

beforeAll(async () => {
  smtp = await startSmtpServer()
  opened = await buildPod({
    environment: {
      SMTP_URL: smtp.url,
      MAIL_FROM: 'pod@pod.example',
      INACTIVE_ACCOUNT_DAYS: `${DAYS}`,
      PODMIN_ACCOUNT: 'podmin',
      SIGN_IN_LIMIT: '0',
    },
  })
})
afterAll(async () => {
  await opened.close()
  await smtp.close()
})
beforeEach(async () => {
  await opened.pod.db('outbox').delete()
  await opened.pod.db('users').update({ closeAt: null, closingBy: null, inactiveWarnedAt: null, createdAt: new Date() })
  smtp.mails.length = 0
})

const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS)
const run = (change: Partial<TestPod['pod']> = {}) => closeInactiveAccounts({ ...opened.pod, ...change })

async function rowOf(username: string) {
  return opened.pod.db('users').where({ username }).first()
}

/** An account with a confirmed mailbox whose last use was so many days ago. */
async function idle(username: string, days: number, more: object = {}): Promise<number> {
  const { db } = opened.pod
  if ((await rowOf(username)) === undefined) await opened.people(username)
  const id = await confirmMailbox(opened.pod, username)
  await db('authorizations').where({ userId: id }).delete()
  await db('browser_sessions').where({ userId: id }).delete()
  const never = { signedUpAt: null, lastSignInAt: null, signInAt: null, activeAt: null }
  await db('users')
    .where({ id })
    .update({ createdAt: daysAgo(days), ...never, ...more })
  return id
}

async function mailsOf(username: string): Promise<readonly string[]> {
  await runMails(opened.pod)
  return smtp.mails
    .filter(({ to }) => to.includes(`${username}@mail.example`))
    .map(({ headers }) => headers['subject'] ?? '')
}

it('warns the owner once, 30 days before the closing, with its day', async () => {
  await idle('anna', DAYS - 31)
  await run()
  expect([await mailsOf('anna'), (await rowOf('anna')).inactiveWarnedAt]).toEqual([[], null])

  await idle('anna', DAYS - 29)
  await run()
  await run()

  expect(await mailsOf('anna')).toEqual(['Your account on The pod under test will be closed'])
  const day = new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' }).format(
    (await rowOf('anna')).inactiveWarnedAt.getTime() + 30 * DAY_MS,
  )
  expect(smtp.mails[0]?.text).toContain(`If the account is not used by ${day}, it will be closed.`)
})

it('begins the closing with the grace period if the account is unused for 30 days after the warning', async () => {
  await idle('bert', DAYS + 50, { inactiveWarnedAt: daysAgo(29) })
  await run()
  expect((await rowOf('bert')).closeAt).toBeNull()

  await idle('bert', DAYS + 50, { inactiveWarnedAt: daysAgo(31) })
  await Promise.all([run(), run()])

  const { closeAt, closingBy } = await rowOf('bert')
  expect([Math.round((closeAt.getTime() - Date.now()) / DAY_MS), closingBy]).toEqual([7, 'inactivity'])
  expect(await mailsOf('bert')).toEqual(['Your account on The pod under test is being closed'])
  const entries = await opened.pod.db('audit_entries').where({ action: 'account.closing' })
  expect(entries).toMatchObject([{ via: 'system', reason: 'The account was not used for 100 days.' }])
})

it('keeps an account whose owner signs in during the grace period', async () => {
  await idle('cara', DAYS + 50, { inactiveWarnedAt: daysAgo(31) })
  await run()
  expect((await rowOf('cara')).closingBy).toBe('inactivity')

  const browser = openBrowser(opened.app, opened.pod.config.url)
  await browser.visit('/users/sign_in')
  await browser.submit({ username: 'cara', password: 'the password of cara' })

  expect([browser.url.pathname, (await browser.visit('/settings')).statusCode]).toEqual(['/', 200])
  expect(await rowOf('cara')).toMatchObject({ closeAt: null, closingBy: null, activeAt: expect.any(Date) })
  await run()
  expect((await rowOf('cara')).closeAt).toBeNull()
})

it.each([
  ['a sign-in with the password', { lastSignInAt: daysAgo(10) }],
  ['a use by an application or a browser', { activeAt: daysAgo(10) }],
])('counts %s after the warning', async (_what, use) => {
  await idle('dora', DAYS + 50, { inactiveWarnedAt: daysAgo(31), ...use })
  await run()
  expect((await rowOf('dora')).closeAt).toBeNull()
})

it('notes the use of an account by an application once a day', async () => {
  const { db } = opened.pod
  const userId = await idle('emil', DAYS)
  await db('authorizations').insert({ userId, clientId: null, grantId: 'grant of emil', scopes: ['openid'] })
  const useToken = (byte: number) =>
    insertToken(db, 'access_token', {
      hash: Buffer.alloc(32, byte),
      grantId: 'grant of emil',
      payload: {},
      lifetime: 60,
    })

  await useToken(1)
  const { activeAt } = await rowOf('emil')
  expect(Date.now() - activeAt.getTime()).toBeLessThan(DAY_MS)
  await useToken(2)
  expect((await rowOf('emil')).activeAt).toEqual(activeAt)
  await db('users')
    .where({ id: userId })
    .update({ activeAt: daysAgo(2) })
  await useToken(3)
  expect((await rowOf('emil')).activeAt.getTime()).toBeGreaterThanOrEqual(activeAt.getTime())
})

it('leaves out accounts that cannot be warned or must stay', async () => {
  const old = { inactiveWarnedAt: daysAgo(31) }
  await idle('fred', DAYS + 50, { ...old, emailConfirmedAt: null })
  await idle('gus', DAYS + 50, { ...old, mailState: 'suppressed' })
  await idle('hugo', DAYS + 50, { ...old, lockedAt: daysAgo(60) })
  await idle('podmin', DAYS + 50, old)
  await idle('ines', DAYS + 50, { ...old, role: 'admin' })
  const userId = await idle('jan', DAYS + 50, old)
  const [{ id }] = await opened.pod
    .db('authorizations')
    .insert({ userId, clientId: null, scopes: ['openid'] })
    .returning('id')
  await opened.pod.db('access_tokens').insert({ authorizationId: id, tokenHash: Buffer.alloc(32, 9), expiresAt: null })

  await run()

  for (const name of ['fred', 'gus', 'hugo', 'podmin', 'ines', 'jan']) {
    expect([name, (await rowOf(name)).closeAt]).toEqual([name, null])
  }
  expect(await runMails(opened.pod)).toEqual([])
})

it('warns again if the warning was never sent', async () => {
  const userId = await idle('kurt', DAYS + 50, { inactiveWarnedAt: daysAgo(20) })
  const [{ id }] = await opened.pod
    .db('mails')
    .insert({ userId, kind: 'account_unused', sentAt: new Date() })
    .returning('id')
  await run()
  expect(await mailsOf('kurt')).toEqual([])

  await opened.pod.db('mails').where({ id }).update({ sentAt: null })
  await run()
  expect(await mailsOf('kurt')).toHaveLength(1)
  expect((await rowOf('kurt')).inactiveWarnedAt.getTime()).toBeGreaterThan(daysAgo(1).getTime())
})

it('sends no warning to an owner who has used the account in the meantime', async () => {
  await idle('lena', DAYS)
  await run()
  await opened.pod
    .db('users')
    .where({ username: 'lena' })
    .update({ activeAt: new Date(Date.now() + 1_000) })

  expect(await mailsOf('lena')).toEqual([])
})

it('does nothing if it is off or the pod sends no mail', async () => {
  await idle('mona', DAYS + 50, { inactiveWarnedAt: daysAgo(31) })
  const { config } = opened.pod

  await run({ config: { ...config, inactiveAccountDays: 0 } })
  await run({ config: { ...config, mail: undefined } })

  expect((await rowOf('mona')).closeAt).toBeNull()
})

it('warns a limited number of owners in one run', async () => {
  const { db } = opened.pod
  const names = Array.from({ length: INACTIVITY_LIMITS.accountsPerRun + 1 }, (_, index) => `many${index}`)
  for (const name of names) await addUserRow(opened.pod, name)
  await db('users')
    .whereIn('username', names)
    .update({ email: db.raw(`username || '@mail.example'`), emailConfirmedAt: new Date(), createdAt: daysAgo(DAYS) })
  const countWarned = async () => Number((await db('users').whereNotNull('inactiveWarnedAt').count())[0]?.['count'])

  await run()
  expect(await countWarned()).toBe(INACTIVITY_LIMITS.accountsPerRun)
  await run()
  expect(await countWarned()).toBe(names.length)
})
