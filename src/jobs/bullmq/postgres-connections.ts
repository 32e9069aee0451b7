import { EventEmitter } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { type PgPool, PostgresConnection, PostgresQueueBackend, type WorkerOptions } from 'bullmq'
import type pg from 'pg'
import { finishTogether } from './finish-jobs-together.js'

/**
 * BullMQ remembers the outcome of its first contact for ever: one failure at the start, and every later call fails at
 * once, in a loop that never lets go of the event loop. The schema is checked when the queues are opened instead.
 */
export class LastingConnection extends PostgresConnection {
  override async waitUntilReady(): Promise<void> {}
}

type ListenClient = Awaited<ReturnType<PostgresConnection['getListenClient']>>

/**
 * All workers of a process listen for jobs on this one connection: for each job that is added, the server wakes every connection
 * that listens, whichever queue it is in. It is closed when the last of them has left.
 */
export class Listener extends LastingConnection {
  #users = 0
  #client: ListenClient | undefined
  #inTurn: ListenClient | undefined

  constructor(pool: PgPool) {
    super(pool)
    this.setMaxListeners(0)
  }

  join(): this {
    this.#users += 1
    return this
  }

  async leave(): Promise<void> {
    this.#users -= 1
    if (this.#users === 0) await this.close()
  }

  override async getListenClient(): Promise<ListenClient> {
    const client = await super.getListenClient()
    if (client !== this.#client || this.#inTurn === undefined) {
      if (client instanceof EventEmitter) client.setMaxListeners(0)
      this.#client = client
      this.#inTurn = inTurn(client)
    }
    return this.#inTurn
  }
}

/**
 * Several who share a connection: each statement begins when the one before has its answer. One without an answer of the server means
 * that the connection is dead, and all behind it would wait as long: it is given up, and those who listen are woken.
 */
function inTurn(client: ListenClient): ListenClient {
  let last: Promise<unknown> = Promise.resolve()
  async function query<Row>(text: string, values?: readonly unknown[]) {
    const answer = last.then(() => client.query<Row>(text, values))
    last = answer.catch((error) => {
      const isOfServer = typeof error?.code === 'string'
      if (!isOfServer && client instanceof EventEmitter && client.listenerCount('error') > 0)
        client.emit('error', error)
    })
    return answer
  }
  return new Proxy(client, {
    get(_client, name) {
      if (name === 'query') return query
      const found: unknown = Reflect.get(client, name)
      return typeof found === 'function' ? found.bind(client) : found
    },
  })
}

/** Held by whoever serves the queue; that of another program means nothing here. */
const SERVES = `hashtext('bullmq: serves'), hashtext($1)`
/**
 * Every step of a job is an event that PostgreSQL tells all who listen to anything, one transaction after the other. BullMQ lets
 * it be while somebody holds this lock. Nobody reads the events here, so one process holds it as long as it listens for the jobs of
 * the queue; the others try again whenever they begin to wait for one.
 */
const SILENCES = `hashtext('bullmq:evnotify:' || $1)`

const UNLOCKED_WITHIN = 1_000

/** The end of one worker. */
export class WorkerConnection extends LastingConnection {
  readonly #queue: string
  readonly #listener: Listener
  #serves: ListenClient | undefined
  #silences: ListenClient | undefined
  #left: Promise<void> | undefined
  readonly #listenAgain = () => this.emit('listenerinvalidated')

  constructor(pool: PgPool, queue: string, listener: Listener) {
    super(pool)
    this.#queue = queue
    this.#listener = listener.join()
    listener.on('listenerinvalidated', this.#listenAgain)
  }

  override async getListenClient(): Promise<ListenClient> {
    const client = await this.#listener.getListenClient()
    if (client !== this.#serves) {
      await client.query(`select pg_advisory_lock_shared(${SERVES})`, [this.#queue])
      this.#serves = client
      this.#listenAgain() // BullMQ may take it for the one before, on which it has listened already
    }
    if (client !== this.#silences) {
      const silenced = `select pg_try_advisory_lock(${SILENCES}) as held`
      const { rows } = await client.query<{ readonly held: boolean }>(silenced, [this.#queue])
      if (rows[0]?.held) this.#silences = client
    }
    return client
  }

  override async close(): Promise<void> {
    this.#left ??= this.#leave()
    await this.#left
    await super.close()
  }

  async #leave(): Promise<void> {
    const unlocks = [`pg_advisory_unlock_shared(${SERVES})`]
    if (this.#silences === this.#serves) unlocks.push(`pg_advisory_unlock(${SILENCES})`)
    // Of a connection that is gone there is nothing to let go of, and one that does not answer loses its locks when it is closed.
    const unlocked = this.#serves?.query(`select ${unlocks.join(', ')}`, [this.#queue]).catch(() => undefined)
    await Promise.race([unlocked, pause(UNLOCKED_WITHIN, undefined, { ref: false })])
    this.#listener.off('listenerinvalidated', this.#listenAgain)
    await this.#listener.leave()
  }
}

/** Milliseconds; the library's. */
const USUAL_LOCK = 30_000

type Moved = ReturnType<PostgresQueueBackend['moveToCompleted']>

/** What knows who serves a queue, in whatever process; and ends jobs together that are done at the same moment. */
export class QueueBackend extends PostgresQueueBackend {
  readonly #pool: pg.Pool
  readonly #finish: ReturnType<typeof finishTogether>

  constructor(pool: pg.Pool, ...rest: ConstructorParameters<typeof PostgresQueueBackend>) {
    super(...rest)
    this.#pool = pool
    // Those of a worker, since a queue finishes none.
    const { lockDuration: lock = USUAL_LOCK, name: worker } = this.opts as Pick<WorkerOptions, 'lockDuration' | 'name'>
    this.#finish = finishTogether({ pool, queue: this.queueName, lock, worker })
  }

  override async moveToCompleted(...finish: Parameters<PostgresQueueBackend['moveToCompleted']>): Moved {
    const [{ id = '' }, , removeOnComplete, token, wantsNext] = finish
    if (removeOnComplete !== true) return super.moveToCompleted(...finish)
    const finishedOn = Date.now()
    // One connection that breaks would make all of them fail that were done together: each tries once more, by itself.
    const turn = await this.#finish({ id, token, wantsNext }).catch(() => undefined)
    if (turn === undefined || turn.left.has(token)) return super.moveToCompleted(...finish)
    const next = turn.taken.get(token)
    return { result: next && [next, next.id, 0, 0], finishedOn }
  }

  override async getClientList(): Promise<string[]> {
    const { rows } = await this.#pool.query(
      `select pid from pg_locks
       where locktype = 'advisory' and mode = 'ShareLock' and granted
         and database = (select oid from pg_database where datname = current_database())
         and (classid, objid) = (
           select (one::bigint & 4294967295)::oid, (other::bigint & 4294967295)::oid from (select ${SERVES}) as key(one, other)
         )`,
      [this.queueName],
    )
    return [rows.map(() => `name=${this.queueName}`).join('\n')]
  }
}
