import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { Redis } from 'ioredis'
import { memoryFolder } from '../files/memory-folder.js'
import { freePort } from '../http/free-port.js'

/** Why the Redis half of the tests does not run here, and how to make it run; `undefined` when it does. */
export function whyNoRedis(): string | undefined {
  if (givenRedisUrl() !== undefined || redisProgram() !== undefined) return undefined
  return 'The Redis half of the queue tests did NOT run: there is no redis-server or valkey-server on the PATH. Install one (apt-get install redis-server), or set TEST_REDIS_URL to a Redis that tests may write to.'
}

export interface TestRedis {
  readonly url: string
  /** The prefix of every key of these tests. */
  readonly prefix: string
  /** Deletes all keys of these tests. */
  empty(): Promise<void>
  /** Deletes the keys that match the pattern, as a server short of memory does. */
  evict(pattern: string): Promise<void>
  /** Sends SIGKILL, and restarts the server from its file. Absent for a Redis that the tests did not start. */
  readonly crash: (() => Promise<void>) | undefined
  /** The server itself. Absent for a Redis that the tests did not start. */
  readonly own: OwnRedis | undefined
  stop(): Promise<void>
}

/** Starts a server for this test file; without the program, uses a key prefix on the server that the environment names. */
export async function startTestRedis(...settings: readonly string[]): Promise<TestRedis> {
  const prefix = `test-${process.pid}-${Date.now().toString(36)}`
  const program = redisProgram()
  const own = program === undefined ? undefined : await startRedisServer(program, settings)
  const url = own?.url ?? givenRedisUrl()
  if (url === undefined) throw new Error(whyNoRedis())
  const client = new Redis(url)
  client.on('error', () => {})

  async function empty(): Promise<void> {
    if (own) {
      await client.flushall()
      return
    }
    await evict('*')
  }

  async function evict(pattern: string): Promise<void> {
    const keys = await client.keys(`${prefix}:${pattern}`)
    if (keys.length > 0) await client.del(...keys)
  }

  return {
    url,
    prefix,
    empty,
    evict,
    crash: own?.crash,
    own,
    async stop() {
      if (!own) await empty()
      client.disconnect()
      await own?.stop()
    },
  }
}

export interface OwnRedis {
  readonly url: string
  crash(): Promise<void>
  /** Sends SIGKILL; the server stays down until `start`. */
  kill(): Promise<void>
  /** Like `kill`, and deletes its files: the server is empty after `start`. */
  lose(): Promise<void>
  start(): Promise<void>
  signal(signal: NodeJS.Signals): void
  stop(): Promise<void>
}

/** Starts a server with an append-only file, which accepted messages rely on. */
export async function startRedisServer(program: string, extra: readonly string[]): Promise<OwnRedis> {
  const folder = await mkdtemp(join(memoryFolder(), 'pod-test-redis-'))
  const port = await freePort()
  const settings = [
    '--port',
    `${port}`,
    '--bind',
    '127.0.0.1',
    '--appendonly',
    'yes',
    '--save',
    '',
    '--dir',
    folder,
    ...extra,
  ]
  let server = await start()
  const cleanUpOnExit = () => void server.kill('SIGKILL')
  process.once('exit', cleanUpOnExit)

  async function start(): Promise<ChildProcess> {
    const started = spawn(program, settings, { stdio: 'ignore' })
    await untilReady(port, started)
    return started
  }

  async function kill(): Promise<void> {
    const ended = new Promise((resolve) => server.once('exit', resolve))
    if (server.exitCode === null && server.kill('SIGKILL')) await ended
  }

  return {
    url: `redis://127.0.0.1:${port}`,
    async crash() {
      await kill()
      server = await start()
    },
    kill,
    async lose() {
      await kill()
      await Promise.all((await readdir(folder)).map((name) => rm(join(folder, name), { recursive: true })))
    },
    async start() {
      server = await start()
    },
    signal: (signal) => void server.kill(signal),
    async stop() {
      process.off('exit', cleanUpOnExit)
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function untilReady(port: number, server: ChildProcess): Promise<void> {
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 20, maxRetriesPerRequest: null })
  client.on('error', () => {})
  const died = new Promise<never>((_, reject) => {
    server.once('error', reject)
    server.once('exit', (code) => reject(new Error(`The Redis of the tests exited at once with code ${code}`)))
  })
  died.catch(() => {}) // the promise is also rejected when the test stops the server
  try {
    await Promise.race([client.ping(), died])
  } finally {
    client.disconnect()
  }
}

export function redisProgram(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return ['redis-server', 'valkey-server']
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find(isProgram)
}

function givenRedisUrl(): string | undefined {
  return process.env['TEST_REDIS_URL'] ?? process.env['REDIS_URL']
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
