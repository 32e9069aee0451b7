import { resolve } from 'node:path'
import { hasCluster } from './cluster.js'
import { makeDataFolder } from './data-folder.js'
import { EmbeddedPostgresError } from './errors.js'
import { findRunning, launch, type Running, type ServerOptions } from './launch.js'
import { becomeOwner, untilGone } from './session.js'
import { stopServer } from './stop.js'

export { EmbeddedPostgresError, hasCluster as hasEmbeddedPostgres }

/** A PostgreSQL of the pod's own that somebody started. */
export interface RunningServer {
  /** A superuser's address: nobody else is meant to use this server. */
  readonly url: string
  readonly pid: number
}

/** The one that belongs to this process: at most one process at a time owns the server of a data folder. */
export interface EmbeddedServer extends RunningServer {
  /** False: it was left behind by a pod that was killed. */
  readonly startedHere: boolean
  /** Resolves when the server ends without having been stopped. Start it again: it comes back at the same address if it can. */
  readonly exited: Promise<void>
  stop(): Promise<void>
}

const DATABASE = 'pod'
const ATTEMPTS = 5

/** Resolves when the database answers. Makes it if there is none, takes over the server if a killed pod left one running. */
export async function startEmbeddedPostgres(dataDir: string, options: ServerOptions = {}): Promise<EmbeddedServer> {
  const folder = resolve(dataDir)
  await makeDataFolder(folder)
  const running = await own(folder, options)
  try {
    await createDatabase(running)
  } catch (error) {
    await stopServer(running.pid, running.cluster)
    throw error
  }
  return ownedServer(running, folder)
}

/** For commands that work while the pod runs: the server of this data folder, or undefined when none is running. */
export async function findRunningEmbeddedPostgres(dataDir: string): Promise<RunningServer | undefined> {
  const running = await findRunning(resolve(dataDir))
  await running?.session.client.end()
  return running && { url: urlOf(running), pid: running.pid }
}

/**
 * The owner we wait for may stop the server instead of leaving it to us; then there is one to be started. A server that ends
 * may make us its owner before our session hears of it, but lets nobody new in.
 */
async function own(dataDir: string, options: ServerOptions): Promise<Running> {
  for (let attempt = 1; ; attempt += 1) {
    const running = (await findRunning(dataDir)) ?? (await launch(dataDir, options))
    try {
      await becomeOwner(running.session, dataDir)
      if ((await findRunningEmbeddedPostgres(dataDir))?.pid !== running.pid) throw new Error('It was ending.')
      return running
    } catch (error) {
      if (error instanceof EmbeddedPostgresError || attempt === ATTEMPTS) throw error
    }
  }
}

function ownedServer(running: Running, dataDir: string): EmbeddedServer {
  const { pid, cluster, session, startedHere } = running
  let stopped: Promise<void> | undefined
  const exited = new Promise<void>((resolve) => {
    void untilGone(session, { pid, cluster, dataDir }, () => stopped !== undefined)
      .catch(() => undefined)
      .then(() => {
        if (stopped === undefined) resolve()
      })
  })
  return {
    url: urlOf(running),
    pid,
    startedHere,
    exited,
    stop() {
      stopped ??= stopServer(pid, cluster)
      return stopped
    },
  }
}

async function createDatabase({ session: { client } }: Running): Promise<void> {
  const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE])
  if (rowCount === 0) await client.query(`create database ${DATABASE}`)
}

function urlOf({ cluster, session }: Running): string {
  return `postgres://pod:${cluster.password}@127.0.0.1:${session.port}/${DATABASE}`
}
