import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { migrateQueue } from '../../src/jobs/queues/queue-schema.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { migrate } from '../../src/persistence/database/migrate.js'
import { reportSkipped } from '../bench.js'
import { parentOf } from './processor-time.js'

/** Benches skip the measurements with Redis where it is not installed. */
const REDIS = 'redis-server'

export type QueueStoreName = 'redis' | 'postgresql'

/** A new database and queue, with the durability of a pod in production. */
export interface BenchStores {
  readonly databaseUrl: string
  readonly superuserUrl: string
  readonly redisUrl: string | undefined
  /** Process ids of the servers, for their processor time. */
  readonly pids: Readonly<Record<string, number>>
  /** Number of statements that a process, identified by its application_name, runs during the work. */
  countStatements(applicationName: string, during: () => Promise<unknown>): Promise<number>
  /** Kills Redis and starts it again. Not set for a queue in the database. */
  readonly crashQueue?: () => Promise<void>
  close(): Promise<void>
}

interface StoreOptions {
  /** Without durability, for benches that only read. */
  readonly fast?: boolean
  /** Further settings of PostgreSQL. */
  readonly settings?: Readonly<Record<string, string>>
}

/** Undefined: Redis is not installed. */
export async function openBenchStores(
  queue: QueueStoreName,
  options: StoreOptions = {},
): Promise<BenchStores | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-bench-'))
  const redis = queue === 'redis' ? await startRedis(folder) : undefined
  if (queue === 'redis' && redis === undefined) {
    await rm(folder, { recursive: true, force: true })
    return undefined
  }
  const database = await startEmbeddedPostgres(join(folder, 'postgres'), options)
  await grantRights(database.superuserUrl)
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: database.url, applicationName: 'bench' })
  try {
    await migrate(db)
    await migrateQueue(database.url)
    const { rows } = await db.raw('select pg_backend_pid() as pid')
    const postgres = parentOf(Number(rows[0].pid)) ?? Number.NaN
    return {
      databaseUrl: database.url,
      superuserUrl: database.superuserUrl,
      redisUrl: redis?.url,
      pids: { postgres, ...(redis && { redis: redis.pid }) },
      countStatements: (applicationName, during) =>
        countStatements(database.superuserUrl, join(folder, 'postgres', 'postgres.log'), applicationName, during),
      ...(redis && { crashQueue: redis.crash }),
      async close() {
        await redis?.stop()
        await database.stop()
        await rm(folder, { recursive: true, force: true })
      },
    }
  } finally {
    await db.destroy()
  }
}

/** Grants what `generatePod` needs: inserts without foreign key checks, a pause of autovacuum, and a checkpoint. */
async function grantRights(superuserUrl: string): Promise<void> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: superuserUrl, applicationName: 'bench' })
  try {
    await db.raw(`
      grant set on parameter session_replication_role to pod_app;
      grant alter system on parameter autovacuum to pod_app;
      grant execute on function pg_reload_conf to pod_app;
      grant pg_checkpoint, pg_maintain to pod_app`)
  } finally {
    await db.destroy()
  }
}

/** Opens the stores with each queue back end in turn. Redis is skipped where it is not installed. */
export async function* openEachStore(
  options: StoreOptions = {},
  wanted: readonly string[] = ['redis', 'postgresql'],
): AsyncGenerator<{ readonly queue: QueueStoreName; readonly stores: BenchStores }> {
  for (const queue of ['redis', 'postgresql'] as const) {
    if (!wanted.includes(queue)) continue
    const stores = await openBenchStores(queue, options)
    if (stores === undefined) {
      reportSkipped('There is no redis-server on the PATH', 'the half with Redis')
      continue
    }
    try {
      yield { queue, stores }
    } finally {
      await stores.close()
    }
  }
}

/** Opens stores with the queue in Redis, or in PostgreSQL where Redis is not installed. */
export async function openAvailableStores(): Promise<BenchStores> {
  const stores = (await openBenchStores('redis')) ?? (await openBenchStores('postgresql'))
  if (stores === undefined) throw new Error('The embedded database did not start.')
  return stores
}

/** Counts statements in the log of the server. Logging slows the server down. */
async function countStatements(
  url: string,
  log: string,
  applicationName: string,
  during: () => Promise<unknown>,
): Promise<number> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url, applicationName: 'bench' })
  try {
    await db.raw(`alter system set log_line_prefix = '%a|'`)
    await db.raw(`alter system set log_statement = 'all'`)
    await db.raw('select pg_reload_conf()')
    const { size } = await stat(log)
    await during()
    await db.raw('alter system reset all')
    await db.raw('select pg_reload_conf()')
    const lines = (await readFile(log)).subarray(size).toString('utf8').split('\n')
    return lines.filter((line) => line.startsWith(`${applicationName}|LOG:`) && /LOG: +(statement|execute)/.test(line))
      .length
  } finally {
    await db.destroy()
  }
}

interface RedisServer {
  readonly url: string
  readonly pid: number
  crash(): Promise<void>
  stop(): Promise<void>
}

/** Starts Redis with durable writes: each command is on disk before its reply. */
async function startRedis(folder: string): Promise<RedisServer | undefined> {
  const port = await freePort()
  const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '']
  const durability = ['--appendonly', 'yes', '--appendfsync', 'always']
  const startServer = () => spawn(REDIS, [...settings, ...durability], { stdio: 'ignore' })
  let server = startServer()
  if (!(await hasStarted(server, port)) || server.pid === undefined) return undefined
  const stop = async () => {
    const exit = once(server, 'exit')
    server.kill('SIGKILL')
    await exit
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: server.pid,
    stop,
    async crash() {
      await stop()
      server = startServer()
      await hasStarted(server, port)
    },
  }
}

async function hasStarted(server: ChildProcess, port: number): Promise<boolean> {
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 20, maxRetriesPerRequest: null })
  client.on('error', () => {})
  const failed = Promise.race([once(server, 'exit'), once(server, 'error')]).then(
    () => false,
    () => false,
  )
  try {
    return await Promise.race([client.ping().then(() => true), failed])
  } finally {
    client.disconnect()
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on a port
  server.close()
  return port
}
