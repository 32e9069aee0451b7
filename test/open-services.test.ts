import { createCipheriv, createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { readConfig } from '../src/config/config.js'
import { createUser } from '../src/domain/accounts/accounts.js'
import { StartError } from '../src/errors/start-error.js'
import { REPLICA_LIMITS } from '../src/persistence/database/limits.js'
import { UserSecrets } from '../src/persistence/models/user.js'
import { recordHeartbeat } from '../src/persistence/operations/processes.js'
import { openServices } from '../src/services/open-services.js'
import { runPeriodically } from '../workers/run-periodically.js'
import {
  createTestDatabase,
  databaseAt,
  openTestDatabase,
  type TestDatabase,
} from './support/databases/test-database.js'
import { openTcpProxy } from './support/http/tcp-proxy.js'
import { fixedKeyCrypto } from './support/pods/fixed-key-crypto.js'

const SECRET_KEY = 'the key that belongs to the accounts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const open = (settings: NodeJS.ProcessEnv) => {
  const config = readConfig({ DATABASE_URL: database.url, SECRET_KEY, LOG_LEVEL: 'silent', ...settings })
  return openServices(config, 'web', { crypto: fixedKeyCrypto() })
}

async function sentenceOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof StartError)) throw new Error(`not refused, or not in a sentence: ${error}`)
  return error.message
}

it('opening a pod waits for an unavailable database, but not for one that rejects the login', async () => {
  const wrongUrl = new URL(database.url)
  wrongUrl.password = 'wrong-password'

  expect(await sentenceOf(open({ DATABASE_URL: wrongUrl.href }))).toMatch(
    /password authentication failed.*DATABASE_URL/,
  )
  expect(await sentenceOf(open({ DATABASE_URL: databaseAt(database.url, 'missing') }))).toMatch(
    /database "missing" does not exist.*DATABASE_URL/,
  )
})

it('opening a pod fails for accounts created with another secret key', async () => {
  const pod = await open({})
  await createUser(pod, { username: 'alice', password: 'correct horse' })
  await pod.close()

  expect(await sentenceOf(open({ SECRET_KEY: SECRET_KEY.toUpperCase() }))).toMatch(/another secret key .* SECRET_KEY/)
  await (await open({})).close()
})

it('a key that is made at the start is refused for a database with accounts', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'pod-new-key-'))
  const pod = await open({})
  await createUser(pod, { username: 'carl', password: 'correct horse' })
  await pod.close()

  expect(await sentenceOf(open({ SECRET_KEY: '', DATA_DIR: dataDir }))).toContain(
    `another secret key than the one in the file secret-key in ${dataDir}`,
  )
  await rm(dataDir, { recursive: true })
})

it('a pod that cannot be opened closes its read replica and its database', async () => {
  await using own = await openTestDatabase()
  const settings = { DATABASE_URL: own.url, DATABASE_READ_URL: own.url, SECRET_KEY, LOG_LEVEL: 'silent' }
  // The storage of pictures is opened last.
  const config = { ...readConfig(settings), storage: 's3', s3: undefined } as const
  const started = vi.spyOn(globalThis, 'setInterval')
  const cleared = vi.spyOn(globalThis, 'clearInterval')
  try {
    const opening = openServices(config, 'web', { crypto: fixedKeyCrypto() })
    await expect(opening).rejects.toThrow('The settings name no S3 store.')
    const checks = started.mock.results.filter(
      (_, index) => started.mock.calls[index]?.[1] === REPLICA_LIMITS.checkIntervalMs,
    )
    expect(checks).toHaveLength(1)
    expect(cleared.mock.calls.map(([timer]) => timer)).toContain(checks[0]?.value)
  } finally {
    started.mockRestore()
    cleared.mockRestore()
  }
  const connections = async () => {
    const { rows } = await own.db.raw(
      `select application_name from pg_stat_activity where datname = current_database() and application_name like 'pod %'`,
    )
    return rows
  }
  await expect.poll(connections).toEqual([])
})

it('an isolated copy does not open a replica, which would be that of its original', async () => {
  for (const [ISOLATED, isOpened] of [
    ['false', true],
    ['true', false],
  ] as const) {
    const pod = await open({ DATABASE_READ_URL: database.url, ISOLATED })
    expect({ ISOLATED, isOpened: pod.replica !== undefined }).toEqual({ ISOLATED, isOpened })
    await pod.close()
  }
})

it('an isolated copy does not start on the database of its original while that runs', async () => {
  const status = { rssBytes: 1, heapBytes: 1, busyPercent: 1, queues: [], jobs: [] }
  const of = (id: string) => ({ id, kind: 'web', host: 'one', pid: 1, version: '1.0.0', startedAt: new Date() })
  const other = await open({ ISOLATED: 'true' })
  await recordHeartbeat(other.db, { ...of(randomUUID()), facts: { ...status, isolated: true } })
  await (await open({ ISOLATED: 'true' })).close()
  const original = { ...of(randomUUID()), facts: status }
  await recordHeartbeat(other.db, original)
  const beats = runPeriodically(100, async () => void (await recordHeartbeat(other.db, original)))
  try {
    expect(await sentenceOf(open({ ISOLATED: 'true' }))).toMatch(
      /processes run on this database: set DATABASE_URL or DATA_DIR/,
    )
  } finally {
    await beats.stop()
  }
  await (await open({})).close()
  await other.db('processes').delete()
  await other.close()
})

it('an isolated copy waits until the heartbeats of processes that were killed are too old', async () => {
  const other = await open({})
  const facts = { rssBytes: 1, heapBytes: 1, busyPercent: 1, queues: [], jobs: [] }
  const of = { id: randomUUID(), kind: 'web', host: 'one', pid: 1, version: '1.0.0', startedAt: new Date() }
  await recordHeartbeat(other.db, { ...of, facts })
  await other.db.raw(`update processes set seen_at = now() - interval '29 seconds'`)

  await (await open({ ISOLATED: 'true' })).close()
  await other.db('processes').delete()
  await other.close()
})

it('only web and worker processes bind the private keys of an earlier version', async () => {
  const pod = await open({})
  await createUser(pod, { username: 'bob', password: 'correct horse' })
  const { userId } = await UserSecrets.query(pod.db).orderBy('userId').first().throwIfNotFound()
  const { privateKey } = await pod.crypto.generateKeyPair()
  const unbound = async () => UserSecrets.query(pod.db).where({ bound: false }).resultSize()
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', createHash('sha256').update(SECRET_KEY).digest(), nonce)
  const sealedPrivateKey = Buffer.concat([nonce, cipher.update(privateKey), cipher.final(), cipher.getAuthTag()])
  await UserSecrets.query(pod.db).findById(userId).patch({ sealedPrivateKey, bound: false })

  await (await openServices(pod.config, 'command', { crypto: fixedKeyCrypto() })).close()
  expect(await unbound()).toBe(1)
  await (await openServices(pod.config, 'worker', { crypto: fixedKeyCrypto() })).close()
  expect(await unbound()).toBe(0)
  await pod.close()
})

it.each(['select 1', 'knex_migrations', 'user_secrets'])(
  'opening a pod waits for a database that goes away on a request for %s',
  async (question) => {
    const proxy = await openTcpProxy(Number(new URL(database.url).port))
    const through = Object.assign(new URL(database.url), { port: `${proxy.port}` })
    const cut = proxy.cutAfterRequest(question)

    const pod = await open({ DATABASE_URL: through.href })

    await cut
    await pod.close()
    await proxy.close()
  },
)
