import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { readConfig } from '../../../src/config/config.js'
import { openJobQueues } from '../../../src/jobs/queues/job-queues.js'
import { type OpenServices, openServices } from '../../../src/services/open-services.js'
import type { PodCrypto } from '../../../src/services/pod-crypto.js'
import { type AppOptions, buildApp } from '../../../src/web/server/app.js'
import { HTTP_LIMITS } from '../../../src/web/server/limits.js'
import { testLog } from '../assertions/test-log.js'
import { createTestDatabase } from '../databases/test-database.js'
import type { FakePods } from '../federation/fake-pods.js'
import { peopleOf, type TestPerson } from '../people/local-users.js'
import type { QueueBackend } from '../queues/queue-backends.js'
import { startTestRedis } from '../queues/redis-server.js'
import { fixedKeyCrypto } from './fixed-key-crypto.js'
import { PATIENT_QUEUE_TIMEOUTS, type PodStores } from './queue-pod.js'

/** Options of a test pod. Default: a web process without a port and without workers, with the queue in a new database. */
export interface PodOptions extends AppOptions {
  /** Settings of the pod, as in `.env`. Default: `https://pod.example` with 4 connections to the database. */
  readonly environment?: NodeJS.ProcessEnv
  /** The queue is on this back end. */
  readonly queue?: QueueBackend
  /** The pod uses this database and queue, which the test has opened and closes. */
  readonly stores?: PodStores | undefined
  /** All outgoing requests lead to these pods, which the test closes. Default: the real client, which refuses loopback. */
  readonly fakePods?: FakePods
  /** Decides the pool and the time limits of the database connections. Default: `web`. */
  readonly process?: 'web' | 'worker'
  /** `false`: without the web application. */
  readonly web?: boolean
  readonly crypto?: PodCrypto
  readonly log?: Logger
  /** Replaces parts of the pod. */
  readonly change?: (pod: OpenServices) => OpenServices
}

export interface PodWithoutWeb extends AsyncDisposable {
  readonly pod: OpenServices
  close(): Promise<void>
}

export interface TestPod extends PodWithoutWeb {
  readonly app: FastifyInstance
  readonly inject: FastifyInstance['inject']
  /** Creates the people, once; a second call returns the same people. */
  people<Name extends string>(...names: Name[]): Promise<Record<Name, TestPerson>>
}

/** Limits without a maximum event loop delay, so that a busy machine causes no rejections. */
export const NO_EVENT_LOOP_LIMIT = { ...HTTP_LIMITS, eventLoopDelayMs: Number.POSITIVE_INFINITY }

/** Builds a pod in the process of the test: real database, real queue, keys from files. */
export function buildPod(options: PodOptions & { readonly web: false }): Promise<PodWithoutWeb>
export function buildPod(options?: PodOptions): Promise<TestPod>
export async function buildPod(options: PodOptions = {}): Promise<PodWithoutWeb | TestPod> {
  const { environment, queue, stores, fakePods, process = 'web', web = true, crypto, log, change, ...app } = options
  const own = stores === undefined ? await openOwnStores(queue) : undefined
  const config = readConfig({
    POD_URL: 'https://pod.example',
    POD_NAME: 'The pod under test',
    DATABASE_URL: stores?.databaseUrl ?? own?.databaseUrl,
    DATABASE_POOL: '4',
    SECRET_KEY: 'a key that is only good for tests',
    REDIS_URL: own?.redisUrl,
    ...environment,
  })
  const opened = await openServices(config, process, { crypto: crypto ?? fixedKeyCrypto(), log: log ?? testLog() })
  // `openServices` takes the key prefix from the URL of the pod. The stores of a test have another one.
  const jobs = stores && (await openJobQueues({ ...stores, log: opened.log, timeouts: PATIENT_QUEUE_TIMEOUTS }))
  const mailExchanges = async () => [] // tests look up no names
  const assembled = {
    ...opened,
    mailExchanges,
    ...(jobs && { jobs }),
    ...(fakePods && { remotePods: fakePods.remotePods() }),
  }
  const pod = change ? change(assembled) : assembled

  async function close(): Promise<void> {
    await jobs?.close()
    await opened.close()
    await own?.close()
  }

  if (!web) return { pod, close, [Symbol.asyncDispose]: close }
  return withWeb(pod, await buildApp(pod, { limits: NO_EVENT_LOOP_LIMIT, ...app }), close)
}

function withWeb(pod: OpenServices, app: FastifyInstance, closePod: () => Promise<void>): TestPod {
  async function close(): Promise<void> {
    await app.close()
    await closePod()
  }
  return {
    pod,
    app,
    inject: app.inject.bind(app),
    people: peopleOf(pod, app),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function openOwnStores(queue: QueueBackend | undefined) {
  const database = await createTestDatabase()
  const redis = queue?.store === 'Redis' ? await startTestRedis() : undefined
  return {
    databaseUrl: database.url,
    redisUrl: redis?.url,
    async close() {
      await redis?.stop()
      await database.drop()
    },
  }
}
