import { EventEmitter } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { type PgPool, PostgresConnection } from 'bullmq'

/**
 * A connection that recovers from a failed start. BullMQ keeps the outcome of its first connection: after one failure every later
 * call fails at once, in a loop that blocks the event loop. The schema is checked when the queues are opened instead.
 */
export class RecoveringConnection extends PostgresConnection {
  override async waitUntilReady(): Promise<void> {}
}

/** Channel on which BullMQ notifies the name of each queue that has a new job. */
const JOBS_CHANNEL = 'bullmq_jobs'

type ListenClient = Awaited<ReturnType<PostgresConnection['getListenClient']>>

/**
 * The connection on which all workers of a process listen for jobs: for each added job the server wakes every listening connection,
 * whichever queue it is for. Closed when the last worker has left.
 */
export class SharedListener extends RecoveringConnection {
  #workers = 0
  #client: ListenClient | undefined
  #serialized: ListenClient | undefined
  #isListening = false
  /** Notifications by queue. */
  readonly #notified = new Map<string, number>()
  #lostConnections = 0

  constructor(pool: PgPool) {
    super(pool)
    this.setMaxListeners(0)
    this.on('listenerinvalidated', () => {
      this.#isListening = false
      this.#lostConnections += 1
    })
  }

  get client(): ListenClient | undefined {
    return this.#isListening ? this.#serialized : undefined
  }

  /** A number that changes when jobs of the queue are added, or may have been. Undefined: this process does not listen now. */
  versionOf(queue: string): number | undefined {
    return this.#isListening ? this.#lostConnections + (this.#notified.get(queue) ?? 0) : undefined
  }

  join(): this {
    this.#workers += 1
    return this
  }

  async leave(): Promise<void> {
    this.#workers -= 1
    if (this.#workers === 0) await this.close()
  }

  override async getListenClient(): Promise<ListenClient> {
    const client = await super.getListenClient()
    if (client !== this.#client || this.#serialized === undefined) {
      if (client instanceof EventEmitter) client.setMaxListeners(0)
      this.#client = client
      this.#serialized = serialized(client)
      await this.#listen(client, this.#serialized)
    }
    return this.#serialized
  }

  /** The library listens too, but only while a worker waits. */
  async #listen(client: ListenClient, serialized: ListenClient): Promise<void> {
    client.on('notification', ({ channel, payload = '' }) => {
      if (channel !== JOBS_CHANNEL) return
      this.#notified.set(payload, (this.#notified.get(payload) ?? 0) + 1)
      this.emit('notified', payload)
    })
    await serialized.query(`listen ${JOBS_CHANNEL}`)
    this.#isListening = client === this.#client
  }
}

/**
 * Sends the statements of several workers one after another. A statement that fails without an answer of the server means that the
 * connection is dead, and all later ones would wait as long: the client reports an error, and the workers reconnect.
 */
function serialized(client: ListenClient): ListenClient {
  let last: Promise<unknown> = Promise.resolve()
  async function query<Row>(text: string, values?: readonly unknown[]) {
    const answer = last.then(() => client.query<Row>(text, values))
    last = answer.catch((error) => {
      const isServerError = typeof error?.code === 'string'
      if (!isServerError && client instanceof EventEmitter && client.listenerCount('error') > 0)
        client.emit('error', error)
    })
    return answer
  }
  return new Proxy(client, {
    get(_client, name) {
      if (name === 'query') return query
      const property: unknown = Reflect.get(client, name)
      return typeof property === 'function' ? property.bind(client) : property
    },
  })
}

/** A shared lock that each worker holds while it serves the queue; it is how workers are counted. */
const WORKER_LOCK_GROUP_SQL = `hashtext('bullmq: serves')`
const WORKER_LOCK_SQL = `${WORKER_LOCK_GROUP_SQL}, hashtext($1)`

/** Condition on `pg_locks`: a shared advisory lock that is held in this database. */
export const IS_HELD_SHARED_LOCK_SQL = `locktype = 'advisory' and mode = 'ShareLock' and granted
  and database = (select oid from pg_database where datname = current_database())`

/** The columns `(classid, objid)` of the lock of a worker in `pg_locks`, for the queue of an SQL expression. */
export function workerLockIdSql(queue: string): string {
  const [group, key] = [WORKER_LOCK_GROUP_SQL, `hashtext(${queue})`].map(
    (half) => `(${half}::bigint & 4294967295)::oid`,
  )
  return `(${group}, ${key})`
}

/**
 * Suppresses the events of a queue. Every step of a job is an event that PostgreSQL sends to all listening connections, one
 * transaction after another. BullMQ sends none while this lock is held: it takes the lock for a moment to make sure that nothing
 * listens for events. This program never does, so one process holds the lock as long as it listens for the jobs of the queue; the
 * others try again when they begin to wait, at most once in `RETRY_LOCK_MS`.
 */
const NO_EVENTS_LOCK_SQL = `hashtext('bullmq:evnotify:' || $1)`

const UNLOCK_TIMEOUT_MS = 1_000
const RETRY_LOCK_MS = 1_000

/** The connection of one worker, on the shared listener. */
export class WorkerConnection extends RecoveringConnection {
  readonly #queue: string
  readonly #listener: SharedListener
  /** The client that holds the lock `WORKER_LOCK_SQL` for this worker, and the one that holds `NO_EVENTS_LOCK_SQL`. */
  #workerLockHolder: ListenClient | undefined
  #noEventsLockHolder: ListenClient | undefined
  #lockAttempt: { readonly client: ListenClient; readonly ended: Promise<void> } | undefined
  #retryLockAt = 0
  #leaving: Promise<void> | undefined
  readonly #listenAgain = () => this.emit('listenerinvalidated')

  constructor(pool: PgPool, queue: string, listener: SharedListener) {
    super(pool)
    this.#queue = queue
    this.#listener = listener.join()
    listener.on('listenerinvalidated', this.#listenAgain)
  }

  /** False before the first wait of this worker, and after the listener has reconnected. */
  get holdsWorkerLock(): boolean {
    return this.#workerLockHolder !== undefined && this.#workerLockHolder === this.#listener.client
  }

  override async getListenClient(): Promise<ListenClient> {
    const client = await this.#listener.getListenClient()
    if (client !== this.#workerLockHolder) {
      await client.query(`select pg_advisory_lock_shared(${WORKER_LOCK_SQL})`, [this.#queue])
      this.#workerLockHolder = client
      this.#listenAgain() // BullMQ may have listened on the client before this one
    }
    await this.#tryNoEventsLock(client)
    return client
  }

  /** Tries again to suppress events, for a wait that did not call `getListenClient`. Another process or a job may have held the lock before. */
  suppressEvents(): void {
    const client = this.#workerLockHolder
    if (client === undefined || performance.now() < this.#retryLockAt) return
    void this.#tryNoEventsLock(client).catch(() => undefined) // the listener reports a lost connection
  }

  async #tryNoEventsLock(client: ListenClient): Promise<void> {
    if (client === this.#noEventsLockHolder) return
    // An attempt on a connection that was lost may not end soon.
    if (this.#lockAttempt?.client !== client) this.#lockAttempt = { client, ended: this.#lockOnce(client) }
    const attempt = this.#lockAttempt
    try {
      await attempt.ended
    } finally {
      if (this.#lockAttempt === attempt) this.#lockAttempt = undefined
    }
  }

  async #lockOnce(client: ListenClient): Promise<void> {
    this.#retryLockAt = performance.now() + RETRY_LOCK_MS
    const tryLock = `select pg_try_advisory_lock(${NO_EVENTS_LOCK_SQL}) as "isHeld"`
    const { rows } = await client.query<{ readonly isHeld: boolean }>(tryLock, [this.#queue])
    if (rows[0]?.isHeld) this.#noEventsLockHolder = client
  }

  override async close(): Promise<void> {
    this.#leaving ??= this.#leave()
    await this.#leaving
    await super.close()
  }

  async #leave(): Promise<void> {
    const attempt = this.#lockAttempt?.ended.catch(() => undefined)
    await Promise.race([attempt, pause(UNLOCK_TIMEOUT_MS, undefined, { ref: false })])
    const unlocks = [`pg_advisory_unlock_shared(${WORKER_LOCK_SQL})`]
    if (this.#noEventsLockHolder === this.#workerLockHolder) unlocks.push(`pg_advisory_unlock(${NO_EVENTS_LOCK_SQL})`)
    // A closed connection holds no locks, and one that does not answer loses them when it is closed.
    const unlocking = this.#workerLockHolder
      ?.query(`select ${unlocks.join(', ')}`, [this.#queue])
      .catch(() => undefined)
    await Promise.race([unlocking, pause(UNLOCK_TIMEOUT_MS, undefined, { ref: false })])
    this.#listener.off('listenerinvalidated', this.#listenAgain)
    await this.#listener.leave()
  }
}
