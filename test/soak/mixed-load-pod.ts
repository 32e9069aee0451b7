import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { readConfig } from '../../src/config/config.js'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { SCOPES } from '../../src/domain/accounts/scopes.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { Person } from '../../src/persistence/models/person.js'
import { User } from '../../src/persistence/models/user.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { createTables } from '../support/databases/create-tables.js'
import { memoryFolder } from '../support/files/memory-folder.js'
import { freePort } from '../support/http/free-port.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { type PodProcess, startPodProcess } from '../support/processes/pod-process.js'
import { startTestRedis, type TestRedis } from '../support/queues/redis-server.js'

/** A local user, with an API client that has all scopes. */
export interface UserWithToken {
  readonly userId: number
  readonly personId: number
  readonly username: string
  readonly guid: string
  readonly address: string
  readonly publicKey: string
  readonly token: string
}

/** A process of the pod with the URL of its metrics. */
export interface WatchedProcess extends PodProcess {
  readonly metrics: string
}

/** A pod with a web and a worker process, on its own stores. */
export interface MixedLoadPod extends AsyncDisposable {
  /** The stores of the pod, opened in the test process. */
  readonly pod: OpenServices
  readonly redis: TestRedis | undefined
  readonly web: WatchedProcess
  readonly worker: WatchedProcess
  readonly localUsers: readonly UserWithToken[]
}

const NAMES = ['alice', 'bob', 'carol', 'dan', 'eve'] as const
const TOKEN_LIFETIME_SECONDS = 3_600
/** Preloaded module that collects garbage on request and reports the used memory. */
const measuredHeap = new URL('../faults/matrix/hooks/measured-heap.mjs', import.meta.url).href

export async function startMixedLoadPod(store: 'Redis' | 'PostgreSQL'): Promise<MixedLoadPod> {
  const cleanups: (() => Promise<unknown>)[] = []
  async function close(): Promise<void> {
    for (const step of cleanups.splice(0).reverse()) await step()
  }
  try {
    return { ...(await build(store, cleanups)), [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}

async function build(
  store: 'Redis' | 'PostgreSQL',
  cleanups: (() => Promise<unknown>)[],
): Promise<Omit<MixedLoadPod, typeof Symbol.asyncDispose>> {
  const folder = await mkdtemp(join(memoryFolder(), 'pod-test-soak-'))
  cleanups.push(() => rm(folder, { recursive: true, force: true }))
  const database = await startEmbeddedPostgres(join(folder, 'postgres'))
  const cleanUpOnExit = () => {
    process.kill(database.pid, 'SIGQUIT')
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 25 })
  }
  process.once('exit', cleanUpOnExit)
  cleanups.push(async () => {
    process.off('exit', cleanUpOnExit)
    await database.stop()
  })
  const redis = store === 'Redis' ? await startTestRedis() : undefined
  if (redis) cleanups.push(() => redis.stop())
  await createTables(database.url)

  const environment: NodeJS.ProcessEnv = {
    POD_URL: 'https://pod.example',
    PODMIN_ACCOUNT: NAMES[0],
    DATABASE_URL: database.url,
    SECRET_KEY: 'a key that is only good for tests',
    ALLOW_PRIVATE_ADDRESSES: 'true',
    CRYPTO_THREADS: '1',
    LOG_LEVEL: 'warn',
    LOG_FORMAT: 'json',
    ...(redis && { REDIS_URL: redis.url }),
  }
  const config = readConfig({ ...environment, DATA_DIR: folder })
  const pod = await openServices(config, 'worker', { crypto: fixedKeyCrypto(), log: pino({ level: 'silent' }) })
  cleanups.push(() => pod.close())
  const localUsers: UserWithToken[] = []
  for (const name of NAMES) localUsers.push(await addUser(pod, name))
  await addContacts(pod, localUsers)

  async function start(kind: 'web' | 'worker'): Promise<WatchedProcess> {
    const admin = `127.0.0.1:${await freePort()}`
    const started = await startPodProcess(kind, { ...environment, ADMIN_LISTEN: admin }, folder, {
      preloaded: [measuredHeap],
    })
    cleanups.push(() => started.kill())
    return { ...started, metrics: `http://${admin}/metrics` }
  }
  const [web, worker] = await Promise.all([start('web'), start('worker')])
  return { pod, redis, web, worker, localUsers }
}

async function addUser(pod: OpenServices, username: string): Promise<UserWithToken> {
  const { guid, address } = await createUser(pod, { username, password: `the password of ${username}` })
  const { id: userId, personId } = await User.byUsername(pod.db, username).throwIfNotFound()
  const { publicKey } = await Person.query(pod.db).findById(personId).throwIfNotFound()
  const { accessToken: token } = await mintToken(pod, username, { scopes: SCOPES, lifetime: TOKEN_LIFETIME_SECONDS })
  return { userId, personId, username, guid, address, publicKey, token }
}

/** Adds contacts between all local users. */
async function addContacts({ db }: OpenServices, people: readonly UserWithToken[]): Promise<void> {
  const pairs = people.flatMap(({ userId, personId: own }) =>
    people.flatMap(({ personId }) => (personId === own ? [] : [{ userId, personId, sharing: true, receiving: true }])),
  )
  await db('contacts').insert(pairs)
}
