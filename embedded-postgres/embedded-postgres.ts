import { resolve } from 'node:path'
import { findPostgresCluster, hasCluster } from './cluster.js'
import { makeDataFolder } from './data-folder.js'
import { EmbeddedPostgresError, ServerOwnedError } from './errors.js'
import { findRunningServer, launch, type Running, type ServerOptions } from './launch.js'
import { refuseMovedDatabase } from './moved.js'
import { findPostmaster } from './postmaster.js'
import { applicationLogin, buildUrl, prepareDatabase, superuserUrl } from './roles.js'
import { acquireOwnerLock, openSession, waitForServerEnd } from './session.js'
import { stopServer } from './stop.js'

export { EmbeddedPostgresError, hasCluster as hasEmbeddedPostgres, ServerOwnedError }

/** A running embedded PostgreSQL, started by this or another process. */
export interface RunningServer {
  /** URL for web, workers and commands: the role owns the database of the pod and is not a superuser. */
  readonly url: string
  readonly pid: number
}

/** The one that belongs to this process: at most one process at a time owns the server of a data folder. */
export interface EmbeddedServer extends RunningServer {
  /** URL for replication, backups and the settings of the server. No process of the pod uses it. */
  readonly superuserUrl: string
  /** False: a killed pod has left it running. */
  readonly startedHere: boolean
  /** Resolves when the server ends without having been stopped. A new start uses the same address if possible. */
  readonly exited: Promise<void>
  stop(): Promise<void>
}

const ATTEMPTS = 5

/** Resolves when the database answers. Makes it if there is none, takes over the server if a killed pod left one running. */
export async function startEmbeddedPostgres(dataDir: string, options: ServerOptions = {}): Promise<EmbeddedServer> {
  const folder = resolve(dataDir)
  refuseMovedDatabase(folder)
  await makeDataFolder(folder)
  const running = await acquireServer(folder, options)
  try {
    await prepareDatabase(running.session.client, running.cluster, running.session.port)
  } catch (error) {
    await stopServer(running.pid, running.cluster)
    throw error
  }
  return ownedServer(running, folder)
}

/** Finds the server of this data folder, for processes that work while the pod runs. Undefined: none is running. */
export async function findRunningEmbeddedPostgres(dataDir: string): Promise<RunningServer | undefined> {
  const cluster = await findPostgresCluster(resolve(dataDir))
  const postmaster = cluster && (await findPostmaster(cluster))
  if (cluster === undefined || postmaster === undefined) return undefined
  const login = applicationLogin(cluster)
  const session = await openSession(cluster, () => findPostmaster(cluster), login)
  await session?.client.end()
  return session && { url: buildUrl(login, session.port), pid: postmaster.pid }
}

/**
 * Becomes the owner of the server. The previous owner may stop the server in the meantime; then a new one is launched. A stopping server may
 * still grant the lock, but accepts no new connection, so the server is looked up again.
 */
async function acquireServer(dataDir: string, options: ServerOptions): Promise<Running> {
  for (let attempt = 1; ; attempt += 1) {
    const running = (await findRunningServer(dataDir)) ?? (await launch(dataDir, options))
    try {
      await acquireOwnerLock(running.session, dataDir)
      const again = await findRunningServer(dataDir)
      await again?.session.client.end()
      if (again?.pid !== running.pid) throw new Error('It was ending.')
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
    void waitForServerEnd(session, { pid, cluster, dataDir }, () => stopped !== undefined)
      .catch(() => undefined)
      .then(() => {
        if (stopped === undefined) resolve()
      })
  })
  return {
    url: buildUrl(applicationLogin(cluster), session.port),
    superuserUrl: superuserUrl(cluster, session.port),
    pid,
    startedHere,
    exited,
    stop() {
      stopped ??= stopServer(pid, cluster)
      return stopped
    },
  }
}
