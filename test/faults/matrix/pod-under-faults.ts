import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../../src/config/config.js'
import { SCOPES } from '../../../src/domain/accounts/scopes.js'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { isIdle, readWorkStatus } from '../../../src/jobs/operations/work-status.js'
import { type OpenServices, openServices } from '../../../src/services/open-services.js'
import { makeDeliveriesDue } from '../../soak/subscribing-pods.js'
import { until } from '../../soak/until.js'
import { testLog, testLogLevel } from '../../support/assertions/test-log.js'
import { type CrashingDatabase, startCrashingDatabase } from '../../support/databases/crashing-database.js'
import { createTables } from '../../support/databases/create-tables.js'
import { type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { addLocalUser, type LocalUser } from '../../support/people/local-users.js'
import { fixedKeyCrypto } from '../../support/pods/fixed-key-crypto.js'
import { type PodProcess, startPodProcess } from '../../support/processes/pod-process.js'
import { type OwnRedis, startTestRedis } from '../../support/queues/redis-server.js'
import { type ProxiedPods, startProxiedPods } from './proxied-pods.js'

export type ProcessKind = 'web' | 'worker'

/** Modules loaded into a process before its own; each file in `hooks` documents its effect. */
type Hook = 'harmful-text' | 'faulty-thread' | 'measured-heap' | 'killed-hand-over' | 'shifted-clock' | 'short-locks'

/** Settings that differ in one process. */
interface ProcessHooks {
  readonly hooks: readonly Hook[]
  readonly settings?: NodeJS.ProcessEnv
  /** The folder `dist` of another release. */
  readonly program?: string
}

/** A local user, with an API client that has all scopes. */
export interface LocalClient extends LocalUser {
  readonly token: string
}

/** A pod with two web and two worker processes on its own stores. All processes and stores can be stopped. */
export interface PodUnderFaults {
  /** The stores of the pod, opened in the test process. */
  readonly pod: OpenServices
  readonly database: CrashingDatabase
  readonly redis: OwnRedis | undefined
  /** Environment shared by all processes. */
  readonly environment: NodeJS.ProcessEnv
  readonly fakePods: FakePods
  readonly otherPods: ProxiedPods
  readonly alice: LocalClient
  readonly bob: LocalClient
  readonly processes: Readonly<Record<ProcessKind, readonly PodProcess[]>>
  /** Base URL of the next web process, in turn. */
  nextBase(): string
  /** Log lines of all processes at level warning and above. */
  logLines(): readonly Record<string, unknown>[]
  /** Starts a new process in place of one that has ended. */
  replace(kind: ProcessKind, index: number): Promise<void>
  killAndReplace(kind: ProcessKind, index: number): Promise<void>
  /** Makes delayed attempts due, and waits until no work is left. */
  waitUntilIdle(timeoutMs?: number): Promise<void>
  close(): Promise<void>
}

export interface PodUnderFaultsOptions {
  readonly store: 'Redis' | 'PostgreSQL'
  /** Environment that differs from the default. */
  readonly settings?: NodeJS.ProcessEnv
  /** Redis options, added to an append-only file with fsync before each reply. */
  readonly redisSettings?: readonly string[]
  /** Folder for the files of one store, if it differs from the default. */
  readonly folders?: { readonly database?: string; readonly redis?: string }
  hooksOf?(kind: ProcessKind, index: number): ProcessHooks | undefined
}

/** Long, because the machine may be busy. */
const IDLE_WITHIN_MS = 180_000

export async function startPodUnderFaults(options: PodUnderFaultsOptions): Promise<PodUnderFaults> {
  const cleanups: (() => Promise<unknown>)[] = []
  async function close(): Promise<void> {
    for (const step of cleanups.splice(0).reverse()) await step()
  }
  try {
    return { ...(await build(options, cleanups)), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function build(
  { store, settings, redisSettings = [], folders = {}, hooksOf }: PodUnderFaultsOptions,
  cleanups: (() => Promise<unknown>)[],
): Promise<Omit<PodUnderFaults, 'close'>> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-under-faults-'))
  cleanups.push(() => rm(folder, { recursive: true, force: true }))
  const database = await startCrashingDatabase(folders.database)
  cleanups.push(() => database.stop())
  const allRedisSettings = folders.redis === undefined ? redisSettings : ['--dir', folders.redis, ...redisSettings]
  const redis = store === 'Redis' ? await startTestRedis('--appendfsync', 'always', ...allRedisSettings) : undefined
  if (redis) cleanups.push(() => redis.stop())
  const fakePods = await startFakePods()
  cleanups.push(() => fakePods.close())
  await createTables(database.url)

  const environment: NodeJS.ProcessEnv = {
    POD_URL: 'https://pod.example',
    DATABASE_URL: database.url,
    SECRET_KEY: 'a key that is only good for tests',
    ALLOW_PRIVATE_ADDRESSES: 'true',
    CRYPTO_THREADS: '1',
    LOG_LEVEL: testLogLevel ?? 'warn',
    LOG_FORMAT: 'json',
    ...(redis && { REDIS_URL: redis.url }),
    ...settings,
  }
  const config = readConfig({ ...environment, DATA_DIR: folder })
  const pod = await openServices(config, 'worker', { crypto: fixedKeyCrypto(), log: testLog() })
  cleanups.push(() => pod.close())
  const [alice, bob] = [await addClient(pod, 'alice'), await addClient(pod, 'bob')]
  const otherPods = await startProxiedPods(pod, fakePods, [alice, bob])
  cleanups.push(() => otherPods.close())

  function start(kind: ProcessKind, index: number): Promise<PodProcess> {
    const { hooks = [], settings: ownSettings, program } = hooksOf?.(kind, index) ?? {}
    const modules = hooks.map((hook) => new URL(`hooks/${hook}.mjs`, import.meta.url).href)
    return startPodProcess(kind, { ...environment, ...ownSettings }, folder, {
      preloaded: modules,
      compiled: program,
    })
  }
  const [web, otherWeb, worker, otherWorker] = await Promise.all([
    start('web', 0),
    start('web', 1),
    start('worker', 0),
    start('worker', 1),
  ])
  const processes: Record<ProcessKind, PodProcess[]> = { web: [web, otherWeb], worker: [worker, otherWorker] }
  const endedProcesses: PodProcess[] = []
  cleanups.push(() => Promise.all(Object.values(processes).flatMap((each) => each.map((one) => one.kill()))))

  async function replace(kind: ProcessKind, index: number): Promise<void> {
    const ended = processes[kind][index]
    if (ended) endedProcesses.push(ended)
    processes[kind][index] = await start(kind, index)
  }

  let requests = 0
  return {
    pod,
    database,
    redis: redis?.own,
    environment: { ...environment, DATA_DIR: folder },
    fakePods,
    otherPods,
    alice,
    bob,
    processes,
    nextBase() {
      requests += 1
      return processes.web[requests % processes.web.length]?.base ?? web.base
    },
    logLines: () => [...endedProcesses, ...processes.web, ...processes.worker].flatMap(({ logged }) => logged),
    replace,
    async killAndReplace(kind, index) {
      await processes[kind][index]?.kill()
      await replace(kind, index)
    },
    async waitUntilIdle(timeoutMs = IDLE_WITHIN_MS) {
      try {
        await until('no work is left', timeoutMs, async () => {
          await makeDeliveriesDue(pod)
          return (await pod.db('deliveries').where({ state: 'waiting' })).length === 0 && (await isIdle(pod))
        })
      } catch (cause) {
        throw new Error(`Work is left: ${JSON.stringify(await readWorkStatus(pod))}`, { cause })
      }
    },
  }
}

async function addClient(pod: OpenServices, username: string): Promise<LocalClient> {
  const user = await addLocalUser(pod, username)
  const { accessToken: token } = await mintToken(pod, username, { scopes: SCOPES, lifetime: 3_600 })
  return { ...user, token }
}
