import { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Client } from 'pg'
import { hasCode, messageOf } from '../src/errors/thrown.js'
import { type Cluster, SUPERUSER } from './cluster.js'
import { EmbeddedPostgresError, ServerOwnedError } from './errors.js'
import { isPostmaster } from './postmaster.js'
import { type Login, superuserLogin } from './roles.js'

/** A connection of the launcher. */
export interface Session {
  readonly client: Client
  readonly port: number
  readonly ended: Promise<void>
  /** The connection no longer keeps the process alive. */
  unref(): void
}

type FindServer = () => Promise<{ readonly port: number | undefined } | undefined>

const STARTING_UP = '57P03'
const WRONG_PASSWORD = '28P01'
const NO_SUCH_DATABASE = '3D000'
const LOCK_NOT_AVAILABLE = '55P03'
const POLL_MS = 15
/** Time without an answer. Replaying the log after a crash may take longer: then the server answers that it is starting. */
const NO_ANSWER_LIMIT_MS = 30_000
/** The owner of a server makes role and database right after its start. */
const PREPARED_LIMIT_MS = 10_000
const PREPARED_POLL_MS = 100
/** A pod that was killed a moment ago may still seem to be connected. */
const OWNER_LIMIT = '3s'
const OWNER_LOCK = 7_061_707

/** Waits for the first successful query; undefined as soon as the server is gone. */
export async function openSession(
  cluster: Cluster,
  findServer: FindServer,
  login = superuserLogin(cluster),
): Promise<Session | undefined> {
  const preparedUntil = Date.now() + (login.user === SUPERUSER ? 0 : PREPARED_LIMIT_MS)
  let answeredAt = Date.now()
  let reason: unknown = new Error('it has opened no port')
  while (Date.now() - answeredAt < NO_ANSWER_LIMIT_MS) {
    const server = await findServer()
    if (server === undefined) return undefined
    if (server.port !== undefined) {
      try {
        return await connect(login, server.port)
      } catch (error) {
        reason = error
        if (hasCode(error, STARTING_UP)) answeredAt = Date.now()
        if (hasCode(error, WRONG_PASSWORD, NO_SUCH_DATABASE)) {
          if (Date.now() >= preparedUntil) break
          await wait(PREPARED_POLL_MS)
        }
      }
    }
    await wait(POLL_MS)
  }
  throw new EmbeddedPostgresError(
    `The PostgreSQL that runs on ${cluster.folder} refuses the login (${messageOf(reason)}): end it (its process id is the first line of postmaster.pid there) and start again.`,
    { cause: reason },
  )
}

/**
 * The session holds an advisory lock that ends with the process: two pods never share a data folder, and a killed pod never blocks
 * its successor.
 */
export async function acquireOwnerLock({ client }: Session, dataDir: string): Promise<void> {
  try {
    await client.query(`set lock_timeout = '${OWNER_LIMIT}'`)
    await client.query('select pg_advisory_lock($1)', [OWNER_LOCK])
  } catch (error) {
    const owner = hasCode(error, LOCK_NOT_AVAILABLE) ? await ownerOf(client).catch(() => undefined) : undefined
    await client.end().catch(() => undefined)
    if (owner === undefined) throw error
    throw new ServerOwnedError(
      `A pod is running on ${dataDir} already (${owner}): stop it first, or give this one a DATA_DIR and a PORT of its own.`,
    )
  }
}

/** Resolves when the server is gone. A session may also be lost alone: one crashed connection makes the server drop them all. */
export async function waitForServerEnd(
  session: Session,
  server: { readonly cluster: Cluster; readonly pid: number; readonly dataDir: string },
  stopping: () => boolean,
): Promise<void> {
  const findServer = async () => ((await isPostmaster(server.pid, server.cluster)) ? session : undefined)
  let current: Session | undefined = session
  while (current !== undefined) {
    current.unref()
    await current.ended
    if (stopping()) return
    current = await openSession(server.cluster, findServer)
    if (current) await acquireOwnerLock(current, server.dataDir)
  }
}

async function connect(login: Login, port: number): Promise<Session> {
  const socket = new Socket()
  const client = new Client({
    host: '127.0.0.1',
    port,
    ...login,
    ssl: false,
    application_name: `process ${process.pid}`,
    connectionTimeoutMillis: 5_000,
    stream: () => socket,
  })
  // Lost data are noticed at `end`.
  client.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => client.once('end', resolve))
  try {
    await client.connect()
    await client.query('select 1')
    return { client, port, ended, unref: () => socket.unref() }
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
}

async function ownerOf(client: Client): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `select application_name as name from pg_locks join pg_stat_activity using (pid)
      where locktype = 'advisory' and objid = $1 and granted`,
    [OWNER_LOCK],
  )
  return rows[0]?.name ?? 'another process'
}
