import { type BackendFactory, type IQueueBackend, type PgPool, PostgresQueueBackend, type WorkerOptions } from 'bullmq'
import type pg from 'pg'
import { addPlainJob, isPlainJob } from './add-job.js'
import { DelayedCompletions } from './delayed-completions.js'
import { EmptyQueueState } from './empty-queue-state.js'
import { openJobExchange } from './exchange-jobs.js'
import {
  IS_HELD_SHARED_LOCK_SQL,
  RecoveringConnection,
  SharedListener,
  WorkerConnection,
  workerLockIdSql,
} from './postgres-connections.js'

interface BackendOptions {
  readonly producers: pg.Pool
  /** Opened for the first worker. */
  openWorkers(): pg.Pool
  /** False: each worker listens on its own connection and fetches and ends its jobs one by one, as the library does it. */
  readonly isTuned: boolean
  report(where: string, error: Error): void
}

/** Backends of BullMQ on the pools of this process. */
export function postgresBackends(options: BackendOptions): BackendFactory<IQueueBackend, 'shared'> {
  return options.isTuned ? tunedBackends(options) : plainBackends(options)
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
    const sharedPool = asPgPool(pool)
    const backendOptions = { ...options, connection: sharedPool }
    if (!isWorker) return new ProducerBackend(pool, new RecoveringConnection(sharedPool), name, backendOptions)
    const workersListener = listenWith(sharedPool)
    const connection = new WorkerConnection(sharedPool, name, workersListener)
    return new WorkerBackend({ pool, listener: workersListener, connection }, name, backendOptions)
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
const DEFAULT_LOCK_MS = 30_000

/** A backend that adds a plain job with one statement, and counts the workers of all processes by their locks. */
class ProducerBackend extends PostgresQueueBackend {
  readonly #pool: pg.Pool

  constructor(pool: pg.Pool, ...rest: ConstructorParameters<typeof PostgresQueueBackend>) {
    super(...rest)
    this.#pool = pool
  }

  override async addJob(...added: Parameters<PostgresQueueBackend['addJob']>): Promise<string> {
    const [job] = added
    return isPlainJob(job) ? addPlainJob(this.#pool, this.queueName, job) : super.addJob(...added)
  }

  override async getClientList(): Promise<string[]> {
    const { rows } = await this.#pool.query(
      `select pid from pg_locks where ${IS_HELD_SHARED_LOCK_SQL} and (classid, objid) = ${workerLockIdSql('$1')}`,
      [this.queueName],
    )
    return [rows.map(() => `name=${this.queueName}`).join('\n')]
  }
}

type Moved = ReturnType<PostgresQueueBackend['moveToCompleted']>

interface WorkerConnections {
  readonly pool: pg.Pool
  readonly listener: SharedListener
  readonly connection: WorkerConnection
}

/** A backend that fetches and ends jobs in groups, and runs no statement while the queue is known to be empty. */
class WorkerBackend extends ProducerBackend {
  readonly #connection: WorkerConnection
  readonly #exchange: ReturnType<typeof openJobExchange>
  readonly #empty: EmptyQueueState
  readonly #completions = new DelayedCompletions()
  #isDisconnected = false

  constructor(
    { pool, listener, connection }: WorkerConnections,
    name: string,
    options: ConstructorParameters<typeof PostgresQueueBackend>[2],
  ) {
    super(pool, connection, name, options)
    this.#connection = connection
    const { lockDuration: lockMs = DEFAULT_LOCK_MS, name: worker } = this.opts as Pick<
      WorkerOptions,
      'lockDuration' | 'name'
    >
    this.#empty = new EmptyQueueState(listener, this.queueName)
    this.#exchange = openJobExchange({ pool, queue: this.queueName, lockMs, worker, empty: this.#empty })
  }

  override async moveToActive(...claim: Parameters<PostgresQueueBackend['moveToActive']>) {
    const [token] = claim
    const emptyUntil = this.#empty.emptyUntil()
    if (emptyUntil !== undefined) return noJob(emptyUntil)
    this.#completions.release()
    const { nextJobs, isLimited, nextDelayedAt } = await this.#exchange({ token, wantsNext: true })
    const next = nextJobs.get(token)
    if (next !== undefined) {
      this.#completions.recordFetch()
      return [next, next.id, 0, 0] as Claimed
    }
    return isLimited ? super.moveToActive(...claim) : noJob(nextDelayedAt)
  }

  override async waitForJob(seconds: number) {
    // The wait of the library takes the lock by which this worker is counted.
    const canWaitHere = this.#connection.holdsWorkerLock && !this.#isDisconnected && !this.closing
    const emptyUntil = canWaitHere ? this.#empty.emptyUntil() : undefined
    if (emptyUntil === undefined) return super.waitForJob(seconds)
    this.#connection.suppressEvents()
    const isNotified = await this.#empty.wait(Math.min(Math.max(seconds, 0) * 1_000, emptyUntil - Date.now()))
    return isNotified ? { member: this.queueName, score: 0 } : null
  }

  override async disconnectBlocking(...wait: Parameters<PostgresQueueBackend['disconnectBlocking']>): Promise<void> {
    this.#isDisconnected = true
    this.#completions.stopDelaying()
    this.#empty.endWait()
    await super.disconnectBlocking(...wait)
  }

  override async reconnectBlocking(): Promise<void> {
    this.#isDisconnected = false
    this.#completions.startDelaying()
    await super.reconnectBlocking()
  }

  override async disconnect(): Promise<void> {
    this.#completions.stopDelaying()
    this.#empty.endWait()
    await super.disconnect()
  }

  override async moveToCompleted(...finish: Parameters<PostgresQueueBackend['moveToCompleted']>): Moved {
    const [{ id = '', opts }, , removeOnComplete, token, wantsNext] = finish
    if (removeOnComplete !== true) return super.moveToCompleted(...finish)
    const finishedOn = Date.now()
    // The end of a named job may be awaited by one with the same name.
    if (opts.deduplication === undefined && this.#empty.emptyUntil() !== undefined)
      await this.#completions.delayCompletion()
    // A broken connection fails the whole group: each job is then finished once more, on its own.
    const exchangedJobs = await this.#exchange({ id, token, wantsNext }).catch(() => undefined)
    if (exchangedJobs === undefined || exchangedJobs.notFinished.has(token)) return super.moveToCompleted(...finish)
    const next = exchangedJobs.nextJobs.get(token)
    return { result: next && [next, next.id, 0, 0], finishedOn }
  }
}

type Claimed = Awaited<ReturnType<PostgresQueueBackend['moveToActive']>>

/** The answer to a worker that gets no job. */
function noJob(nextDelayedAt: number | null): Claimed {
  const isDelayed = nextDelayedAt !== null && Number.isFinite(nextDelayedAt)
  return [null, '', 0, isDelayed ? nextDelayedAt : 0]
}
