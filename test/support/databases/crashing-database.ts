import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type EmbeddedServer, startEmbeddedPostgres } from '../../../embedded-postgres/embedded-postgres.js'
import { memoryFolder } from '../files/memory-folder.js'
import { openTcpProxy, type TcpProxy } from '../http/tcp-proxy.js'
import { copyPreparedData } from './prepared-data.js'
import { administer } from './test-database.js'

/** A database server that the test can kill. Its address never changes. */
export interface CrashingDatabase {
  readonly url: string
  /** The URL of the database itself, without the proxy. */
  directUrl(): string
  /** Sends SIGKILL, and starts the server again: it recovers from its WAL. */
  crash(): Promise<void>
  /** Sends SIGKILL; the server stays down until `start`. It may have ended before. */
  kill(): Promise<void>
  start(): Promise<void>
  /** Saves the data directory, or restores it; the database must be stopped. */
  save(): Promise<void>
  restore(): Promise<void>
  /** Sends the signal to all processes of the server. */
  signal(signal: NodeJS.Signals): void
  /** The proxy between the database and clients that use `url`. */
  readonly proxy: TcpProxy
  stop(): Promise<void>
}

const REMOVE = { recursive: true, force: true, maxRetries: 20, retryDelay: 25 } as const

/** Starts a server with its files in a new folder below `parentFolder`; `stop` removes them. */
export async function startCrashingDatabase(parentFolder = memoryFolder()): Promise<CrashingDatabase> {
  const folder = await mkdtemp(join(parentFolder, 'pod-test-kill-'))
  const saved = `${folder}-saved`
  await copyPreparedData(folder)
  let server: EmbeddedServer = await startEmbeddedPostgres(folder)
  await administer(server.superuserUrl, (client) =>
    client.query('grant set on parameter session_replication_role, deadlock_timeout to pod_app'),
  )
  const proxy = await openTcpProxy(Number(new URL(server.url).port))
  const cleanUpOnExit = () => {
    const shared = sharedMemoryFiles(server.pid)
    sendTo(server.pid, 'SIGKILL')
    for (const each of [folder, saved, ...shared]) rmSync(each, REMOVE)
  }
  process.once('exit', cleanUpOnExit)

  async function kill(): Promise<void> {
    const shared = sharedMemoryFiles(server.pid)
    sendTo(server.pid, 'SIGKILL')
    await server.exited
    await Promise.all(shared.map((each) => rm(each, REMOVE)))
  }

  async function start(): Promise<void> {
    server = await startEmbeddedPostgres(folder)
    proxy.target(Number(new URL(server.url).port))
  }

  return {
    proxy,
    url: Object.assign(new URL(server.url), { port: `${proxy.port}` }).href,
    directUrl: () => server.url,
    kill,
    start,
    save: () => cp(folder, saved, { recursive: true }),
    async restore() {
      await rm(folder, { recursive: true })
      await cp(saved, folder, { recursive: true })
    },
    async crash() {
      await kill()
      await start()
    },
    signal(signal) {
      for (const pid of [server.pid, ...childrenOf(server.pid)]) sendTo(pid, signal)
    },
    async stop() {
      process.off('exit', cleanUpOnExit)
      await proxy.close()
      await server.stop()
      await Promise.all([folder, saved].map((each) => rm(each, REMOVE)))
    },
  }
}

function childrenOf(pid: number): readonly number[] {
  if (process.platform === 'linux')
    return (textOf(`/proc/${pid}/task/${pid}/children`).match(/[0-9]+/g) ?? []).map(Number)
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  const pairs = lines.map((line) => line.trim().split(/ +/).map(Number))
  return pairs.flatMap(([child = Number.NaN, parent]) => (parent === pid ? [child] : []))
}

/** Shared memory of the processes: on Linux these are files, which a killed server leaves behind. */
function sharedMemoryFiles(pid: number): readonly string[] {
  if (process.platform !== 'linux') return []
  const maps = [pid, ...childrenOf(pid)].map((each) => textOf(`/proc/${each}/maps`))
  return [...new Set(maps.join('\n').match(/\/dev\/shm\/PostgreSQL\.[0-9]+/g))]
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // its process has ended
  }
}

/** Sends a signal, unless the process has ended. */
function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
