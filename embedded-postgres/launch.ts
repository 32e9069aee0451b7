import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, open, readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { messageOf } from '../src/errors/thrown.js'
import { type Binaries, copyBinaries, findBinaries, linkLibraries, programPath } from './binaries.js'
import { type Cluster, changeClusterOwner, checkVersion, createCluster, findPostgresCluster } from './cluster.js'
import { EmbeddedPostgresError } from './errors.js'
import { choosePort, disownStalePid, findPostmaster } from './postmaster.js'
import { chooseRunAs, isRoot, type RunAs, spawnAs } from './run-as.js'
import { openSession, type Session } from './session.js'

export interface ServerOptions {
  /** Whether written data may be lost when the machine crashes, for tests. */
  readonly fast?: boolean
  /** Not set: the one of the last time, or any free one. */
  readonly port?: number
  readonly maxConnections?: number
  /** Further settings of the server; they replace those of the pod. */
  readonly settings?: Readonly<Record<string, string>>
}

/** A server that answers queries. */
export interface Running {
  readonly cluster: Cluster
  readonly pid: number
  readonly session: Session
  readonly startedHere: boolean
}

interface Site {
  readonly binaries: Binaries
  /** Holds the cluster: the data folder, unless PostgreSQL cannot reach it. */
  readonly home: string
  readonly runAs: RunAs
}

const PUBLIC_HOMES = '/var/lib/pod'
const DEFAULT_CONNECTIONS = 200
const LOG_LIMIT_BYTES = 10_000_000
/** Pauses between attempts: children of a killed server may still run, or another process may use the port. */
const PAUSES_MS = [0, 50, 100, 200, 400, 800, 1_600, 3_200]

export async function findRunningServer(dataDir: string): Promise<Running | undefined> {
  const cluster = await findPostgresCluster(dataDir)
  if (cluster === undefined) return undefined
  const postmaster = await findPostmaster(cluster)
  const session = postmaster && (await openSession(cluster, () => findPostmaster(cluster)))
  return session && { cluster, session, pid: postmaster.pid, startedHere: false }
}

/** Makes the database if there is none, and starts a server on it. */
export async function launch(dataDir: string, options: ServerOptions): Promise<Running> {
  const site = await chooseSite(dataDir)
  if ((await findPostgresCluster(dataDir)) === undefined) {
    await createCluster({ dataDir, home: site.home }, site.binaries, site.runAs, { fast: options.fast ?? false })
  }
  const cluster = await findPostgresCluster(dataDir)
  if (cluster === undefined)
    throw new EmbeddedPostgresError(`The database in ${dataDir} was removed while it was made.`)
  await checkVersion(cluster, site.binaries)
  await changeClusterOwner(cluster, site.runAs)

  const log = await openLog(dataDir)
  try {
    for (const pause of PAUSES_MS) {
      await wait(pause)
      const running = (await findRunningServer(dataDir)) ?? (await startOnce(cluster, site, log.handle.fd, options))
      if (running) return running
    }
  } finally {
    await log.handle.close()
  }
  throw new EmbeddedPostgresError(
    `PostgreSQL does not start on ${cluster.folder}: ${await complaintIn(log)} See ${log.path}.`,
  )
}

/** Chooses user and folders. As root below a closed home, programs and data go to a public folder. */
async function chooseSite(dataDir: string): Promise<Site> {
  const installed = await findBinaries()
  const binaries = (await linkLibraries(installed)) ? installed : await copyBinaries(installed, dataDir)
  const runAs = await chooseRunAs(binaries, dataDir)
  if (!('failure' in runAs)) return { binaries, home: dataDir, runAs }
  if (!isRoot()) throw cannotRun(runAs.failure)

  const home = join(PUBLIC_HOMES, createHash('sha256').update(dataDir).digest('hex').slice(0, 12))
  await mkdir(home, { recursive: true, mode: 0o711 })
  const copy = await copyBinaries(installed, home)
  const runAsThere = await chooseRunAs(copy, home)
  if ('failure' in runAsThere) throw cannotRun(runAsThere.failure)
  return { binaries: copy, home, runAs: runAsThere }
}

/** Undefined if the server ended before it answered. */
async function startOnce(
  cluster: Cluster,
  site: Site,
  log: number,
  options: ServerOptions,
): Promise<Running | undefined> {
  await disownStalePid(cluster)
  const port = options.port ?? (await choosePort(cluster))
  const child = spawnAs(site.runAs, programPath(site.binaries, 'postgres'), serverArguments(cluster, port, options), {
    // A process group of its own: Ctrl-C must not stop the database before the other processes.
    detached: true,
    stdio: ['ignore', log, log],
  })
  child.unref()
  const session = await Promise.race([
    openSession(cluster, async () => (isAlive(child) ? { port } : undefined)),
    // If another program has the port, the server exits while the connection attempt waits.
    once(child, 'exit').then(noSession, noSession),
  ])
  return session && child.pid ? { cluster, session, pid: child.pid, startedHere: true } : undefined
}

function serverArguments(cluster: Cluster, port: number, options: ServerOptions): readonly string[] {
  const settings = {
    listen_addresses: '127.0.0.1',
    // No socket file: its path may be at most 107 bytes long.
    unix_socket_directories: '',
    max_connections: options.maxConnections ?? DEFAULT_CONNECTIONS,
    shared_preload_libraries: '',
    log_destination: 'stderr',
    logging_collector: 'off',
    // Delay of asynchronous writes: with the default, the server wakes up five times a second while anything is written.
    wal_writer_delay: '1s',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(options.fast ? { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' } : { fsync: 'on' }),
    ...options.settings,
  }
  return [
    ...['-D', cluster.folder, '-p', String(port)],
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
}

function noSession(): undefined {}

function isAlive(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

function cannotRun(cause: unknown): EmbeddedPostgresError {
  const [reason] = messageOf(cause).split('\n')
  return new EmbeddedPostgresError(
    `The PostgreSQL that comes with the pod does not run on this machine (${reason}): set DATABASE_URL to a PostgreSQL server of your own.`,
    { cause },
  )
}

async function openLog(dataDir: string) {
  const path = join(dataDir, 'postgres.log')
  const size = await stat(path).then(
    (file) => file.size,
    () => 0,
  )
  if (size > LOG_LIMIT_BYTES) await rename(path, `${path}.old`)
  return { path, handle: await open(path, 'a', 0o600), start: size > LOG_LIMIT_BYTES ? 0 : size }
}

async function complaintIn(log: { readonly path: string; readonly start: number }): Promise<string> {
  const lines = (await readFile(log.path)).subarray(log.start).toString('utf8').trim().split('\n')
  const complaint = lines.findLast((line) => /FATAL|PANIC|ERROR/.test(line)) ?? lines.at(-1) ?? ''
  return complaint.replace(/^.*?(FATAL|PANIC|ERROR):\s*/, '').replace(/[.]?$/, '.')
}
