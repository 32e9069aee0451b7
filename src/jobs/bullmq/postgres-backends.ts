import { type BackendFactory, type IQueueBackend, type PgPool, PostgresQueueBackend, type WorkerOptions } from 'bullmq'
import type pg from 'pg'
import { finishJobsTogether } from './finish-jobs-together.js'
import { RecoveringConnection, SharedListener, WORKER_LOCK, WorkerConnection } from './postgres-connections.js'

interface BackendOptions {
  readonly producers: pg.Pool
  /** Opened for the first worker. */
  openWorkers(): pg.Pool
  /** False: each worker listens on its own connection and ends its jobs one by one, as the library does it. */
  readonly tuned: boolean
  report(where: string, error: Error): void
}

/** Backends of BullMQ on the pools of this process. */
export function postgresBackends(options: BackendOptions): BackendFactory<IQueueBackend, 'shared'> {
  return options.tuned ? tunedBackends(options) : plainBackends(options)
}

function tunedBackends({ producers, openWorkers, report }: BackendOptions): BackendFactory<IQueueBackend, 'shared'> {
  let listener: SharedListener | undefined

  function listenWith(pool: PgPool): SharedListener {
    if (listener === undefined || listener.isClosing) {
      listener = new SharedListener(pool).on('error', (error: Error) => report('listener', error))
    }
    return listener
  }

  return (name, options, kind) => {
    const isWorker = kind?.withBlockingConnection === true
    const pool = isWorker ? openWorkers() : producers
    const shared = asPgPool(pool)
    const connection = isWorker
      ? new WorkerConnection(shared, name, listenWith(shared))
      : new RecoveringConnection(shared)
    return new TunedBackend(pool, connection, name, { ...options, connection: shared })
  }
}

function plainBackends({ producers, openWorkers }: BackendOptions): BackendFactory<IQueueBackend, 'shared'> {
  return (name, options, kind) => {
    const isWorker = kind?.withBlockingConnection === true
    const connection = asPgPool(isWorker ? openWorkers() : producers)
    const clientName = isWorker ? name : undefined // how the library counts workers
    return new PostgresQueueBackend(
      new RecoveringConnection(connection),
      name,
      { ...options, connection },
      true,
      clientName,
    )
  }
}

/** BullMQ describes the same pool with looser types of its own. */
function asPgPool(pool: pg.Pool): PgPool {
  return pool as unknown as PgPool
}

/** Milliseconds; the default of the library. */
const DEFAULT_LOCK = 30_000

type Moved = ReturnType<PostgresQueueBackend['moveToCompleted']>

/** A backend that ends jobs in groups, and counts the workers of all processes by their locks. */
class TunedBackend extends PostgresQueueBackend {
  readonly #pool: pg.Pool
  readonly #finish: ReturnType<typeof finishJobsTogether>

  constructor(pool: pg.Pool, ...rest: ConstructorParameters<typeof PostgresQueueBackend>) {
    super(...rest)
    this.#pool = pool
    // Options of a worker: only workers finish jobs.
    const { lockDuration: lock = DEFAULT_LOCK, name: worker } = this.opts as Pick<
      WorkerOptions,
      'lockDuration' | 'name'
    >
    this.#finish = finishJobsTogether({ pool, queue: this.queueName, lock, worker })
  }

  override async moveToCompleted(...finish: Parameters<PostgresQueueBackend['moveToCompleted']>): Moved {
    const [{ id = '' }, , removeOnComplete, token, wantsNext] = finish
    if (removeOnComplete !== true) return super.moveToCompleted(...finish)
    const finishedOn = Date.now()
    // A broken connection fails the whole group: each job is then finished once more, on its own.
    const result = await this.#finish({ id, token, wantsNext }).catch(() => undefined)
    if (result === undefined || result.notFinished.has(token)) return super.moveToCompleted(...finish)
    const next = result.nextJobs.get(token)
    return { result: next && [next, next.id, 0, 0], finishedOn }
  }

  override async getClientList(): Promise<string[]> {
    const { rows } = await this.#pool.query(
      `select pid from pg_locks
       where locktype = 'advisory' and mode = 'ShareLock' and granted
         and database = (select oid from pg_database where datname = current_database())
         and (classid, objid) = (
           select (one::bigint & 4294967295)::oid, (other::bigint & 4294967295)::oid from (select ${WORKER_LOCK}) as key(one, other)
         )`,
      [this.queueName],
    )
    return [rows.map(() => `name=${this.queueName}`).join('\n')]
  }
}
