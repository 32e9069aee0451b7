import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FastifyInstance, fastify } from 'fastify'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { readConfig } from '../../src/config/config.js'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { findViewer } from '../../src/domain/accounts/viewers.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { migrateQueue } from '../../src/jobs/queues/queue-schema.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { migrate } from '../../src/persistence/database/migrate.js'
import { openServices } from '../../src/services/open-services.js'
import { buildApp } from '../../src/web/server/app.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, median, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { HttpLoad, LoadResult } from '../load/http-load.js'
import { listen } from '../load/listen.js'
import { forkFile, nextMessage } from '../machine/child-process.js'

const CONNECTIONS = 32
const MILLISECONDS = 1_000

/** The most frequent requests of other pods, compared with a plain Fastify route that returns the same body from memory. */
export async function* benchDiscovery({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-bench-'))
  const database = await startEmbeddedPostgres(folder, { fast: true })
  const crypto = openCryptoPool(1)
  const loader = forkFile('load/http-load')
  try {
    await migrateDatabase(database.url)
    const config = readConfig({
      POD_URL: 'https://pod.example',
      DATABASE_URL: database.url,
      SECRET_KEY: 'a key that is only good for benches',
    })
    const services = await openServices(config, 'web', { crypto, log: pino({ level: 'silent' }) })
    const app = await buildApp(services)
    try {
      const { guid } = await createUser(services, { username: 'alice', password: 'the password of alice' })
      const { accessToken } = await mintToken(services, 'alice', { scopes: ['public:modify'], lifetime: 3_600 })
      const viewer = await findViewer(services, accessToken)
      if (viewer === undefined) throw new Error('The new token is not valid.')
      const post = await publishPost(services, viewer, { text: 'Good morning', public: true })
      yield* measure(app, loader, rounds, [
        ['webfinger', '/.well-known/webfinger?resource=acct:alice@pod.example'],
        ['hcard', `/hcard/users/${guid}`],
        ['fetch, signed before', `/fetch/post/${post.guid}`],
      ])
    } finally {
      await app.close()
      await services.close()
    }
  } finally {
    loader.kill()
    await crypto.close()
    await database.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function migrateDatabase(url: string): Promise<void> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url, applicationName: 'bench' })
  await migrate(db).finally(() => db.destroy())
  await migrateQueue(url)
}

async function* measure(
  app: FastifyInstance,
  loader: ChildProcess,
  rounds: number,
  cases: readonly (readonly [name: string, path: string])[],
): AsyncGenerator<Result> {
  const port = await listen(app)
  for (const [name, path] of cases) {
    const bare = fastify()
    const { body, headers } = await app.inject(path)
    bare.get('/', async (_request, reply) => reply.type(String(headers['content-type'])).send(body))
    try {
      const barePort = await listen(bare)
      const podLoads: LoadMeasurement[] = []
      const bareLoads: LoadMeasurement[] = []
      await measureLoad(loader, port, path) // warms up both servers
      await measureLoad(loader, barePort, '/')
      for (let round = 0; round < rounds; round += 1) {
        podLoads.push(await measureLoad(loader, port, path))
        bareLoads.push(await measureLoad(loader, barePort, '/'))
      }
      yield resultOf(name, podLoads, bareLoads)
    } finally {
      await bare.close()
    }
  }
}

interface LoadMeasurement {
  readonly perSecond: number
  readonly cpuMicroseconds: number
  readonly failures: number
}

async function measureLoad(loader: ChildProcess, port: number, path: string): Promise<LoadMeasurement> {
  const before = process.cpuUsage()
  const requests = [{ path }]
  const task: HttpLoad = { port, requests, host: 'pod.example', connections: CONNECTIONS, milliseconds: MILLISECONDS }
  loader.send(task)
  const { responses, seconds, failures } = await nextMessage<LoadResult>(loader)
  const { user, system } = process.cpuUsage(before)
  return { perSecond: responses / seconds, cpuMicroseconds: (user + system) / responses, failures }
}

function resultOf(name: string, podLoads: readonly LoadMeasurement[], bareLoads: readonly LoadMeasurement[]): Result {
  const rates = podLoads.map(({ perSecond }) => perSecond)
  const value = median(rates)
  const limit = median(bareLoads.map(({ perSecond }) => perSecond))
  return {
    bench: 'discovery',
    case: name,
    value,
    unit: 'requests/s',
    limit,
    ratio: value / limit,
    floor: FLOORS.discovery,
    rounds: podLoads.length,
    spread: spreadOf(rates),
    cpu_us: {
      web: median(podLoads.map(({ cpuMicroseconds }) => cpuMicroseconds)),
      bare: median(bareLoads.map(({ cpuMicroseconds }) => cpuMicroseconds)),
    },
    ok: [...podLoads, ...bareLoads].every(({ failures }) => failures === 0),
  }
}
