import pg from 'pg'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { openJobQueues } from '../../src/jobs/queues/job-queues.js'
import { administer, createTestDatabase, type TestDatabase } from '../support/databases/test-database.js'

const greet = defineJob<{ text: string }>()('notify', 'greet', retriedForHours)
const timing = { concurrency: 4, lockMs: 5_000, stalledCheckMs: 5_000, backoff: () => 10 }
const log = pino({ level: 'silent' })

type Jobs = Awaited<ReturnType<typeof openJobQueues>>

let database: TestDatabase
let opened: Set<Jobs>
let workers: ReturnType<Jobs['serve']>[]
beforeEach(async () => {
  database = await createTestDatabase()
  opened = new Set()
  workers = []
})
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close()))
  for (const jobs of opened) await close(jobs)
  await database.drop()
})

async function open(): Promise<Jobs> {
  const queues = await openJobQueues({ redisUrl: undefined, databaseUrl: database.url, log })
  const serveAndRecord: Jobs['serve'] = (...work) => {
    const worker = queues.serve(...work)
    workers.push(worker)
    return worker
  }
  const jobs = { ...queues, serve: serveAndRecord }
  opened.add(jobs)
  return jobs
}

async function close(jobs: Jobs): Promise<void> {
  opened.delete(jobs)
  await jobs.close()
}

/** Number of rows read from the job table, as reported by closed sessions. */
async function rowsRead(): Promise<{ readonly scans: number; readonly byIndex: number }> {
  return administer(database.url, async (client) => {
    const { rows } = await client.query(`
      select
        (select seq_scan from pg_stat_user_tables where relid = 'bullmq.job'::regclass)::int as scans,
        (select sum(idx_tup_read) from pg_stat_user_indexes where relid = 'bullmq.job'::regclass)::int as "byIndex"`)
    return rows[0]
  })
}

/** A worker of the queue that counts finished jobs. */
function serve(jobs: Jobs, concurrency = 4) {
  let done = 0
  const run = async () => {
    done += 1
  }
  const worker = jobs.serve('notify', run, { ...timing, concurrency })
  return {
    done: () => done,
    untilDone: (count: number) => vi.waitFor(() => expect(done).toBeGreaterThanOrEqual(count)),
    close: () => worker.close(),
  }
}

const greetings = (count: number) => Array.from({ length: count }, () => ({ text: 'hello' }))

describe('a long queue in PostgreSQL costs no more for a job than a short one', () => {
  const LONG = 1_000
  const TAKEN = 100
  /** Active jobs, jobs being locked, and dead tuples that no vacuum has removed yet. */
  const READ_FOR_A_JOB = 200

  it('on connections opened while the queue was empty', async () => {
    const jobs = await open()
    await administer(database.url, (client) => client.query('vacuum analyze bullmq.job'))
    const worker = serve(jobs, 1)
    // PostgreSQL chooses a generic plan after five executions of a statement.
    for (let times = 1; times <= 10; times += 1) {
      await jobs.add(greet, { text: 'hello' })
      await worker.untilDone(times)
    }
    await jobs.addAll(greet, greetings(LONG))
    await worker.untilDone(TAKEN)
    await worker.close()
    await close(jobs)

    const { scans, byIndex } = await rowsRead()
    expect(scans).toBe(0)
    expect(byIndex / worker.done()).toBeLessThan(READ_FOR_A_JOB)
  })

  it('with table statistics of an empty queue', async () => {
    const jobs = await open()
    await jobs.addAll(greet, greetings(300))
    await administer(database.url, async (client) => {
      await client.query(`update bullmq.job set state = 'active'`)
      await client.query('analyze bullmq.job')
      await client.query('delete from bullmq.job')
      await client.query('vacuum (truncate off) bullmq.job')
    })
    await jobs.addAll(greet, greetings(LONG))
    const before = await rowsRead()
    const worker = serve(jobs)
    await worker.untilDone(TAKEN)
    await worker.close()
    await close(jobs)

    const after = await rowsRead()
    expect(after.scans).toBe(before.scans)
    expect((after.byIndex - before.byIndex) / worker.done()).toBeLessThan(READ_FOR_A_JOB)
  })
})

describe('the queue in PostgreSQL', () => {
  afterEach(() => vi.restoreAllMocks())

  it('flushes a job to disk before it is acknowledged, and workers do not wait for the disk', async () => {
    const query = pg.Client.prototype.query
    const asked = new Map<pg.Client, string>()
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...rest: unknown[]) {
      const text = typeof rest[0] === 'string' ? rest[0] : Reflect.get(Object(rest[0]), 'text')
      asked.set(this, `${asked.get(this) ?? ''}\n${text}`)
      return Reflect.apply(query, this, rest)
    })
    const jobs = await open()
    await jobs.add(greet, { text: 'hello' })
    await jobs.addAll(greet, greetings(2))
    const worker = serve(jobs)
    await worker.untilDone(3)
    await worker.close()

    const told = [...asked.values()]
    const producers = told.filter((all) => /add_job|insert into job/.test(all))
    const workers = told.filter((all) => /state = 'active', lock_token/.test(all))
    expect(producers).not.toEqual([])
    expect(workers).not.toEqual([])
    expect(producers.filter((all) => all.includes('synchronous_commit'))).toEqual([])
    expect(workers.filter((all) => !all.includes('synchronous_commit = off'))).toEqual([])
  })

  /** The library adds a job with a deduplication key, and sends events of it. */
  const byLibrary = { deduplicationKey: 'a name' }

  it('sends no events while a worker holds the listening lock, and the next worker takes over', async () => {
    await administer(database.url, async (client) => {
      const heard: (string | undefined)[] = []
      client.on('notification', ({ payload }) => heard.push(payload))
      await client.query('listen bullmq_events')
      /** Resolves when all notifications sent so far have been received. */
      const heardSoFar = async () => {
        await client.query(`notify bullmq_events, 'end'`)
        await vi.waitFor(() => expect(heard).toContain('end'))
        return heard.splice(0).slice(0, -1)
      }
      const jobs = await open()
      await jobs.add(greet, { text: 'nobody is there yet' }, byLibrary)
      expect(await heardSoFar()).toEqual(['notify'])

      const first = serve(jobs)
      const holder = await untilHeld(jobs)
      await heardSoFar()
      await jobs.add(greet, { text: 'for the first' }, byLibrary)
      await untilEmpty(jobs)
      expect(await heardSoFar()).toEqual([])

      const others = await open()
      const second = serve(others)
      await first.close()
      await untilHeld(jobs, holder)
      await heardSoFar()
      await jobs.add(greet, { text: 'for the second' }, byLibrary)
      await untilEmpty(jobs)
      expect(await heardSoFar()).toEqual([])
      expect(second.done()).toBeGreaterThan(0)
      await second.close()
    })
  })

  it('sends no events either when the lock was taken as the worker began to listen', async () => {
    const jobs = await open()
    await administer(database.url, async (client) => {
      await client.query(`select pg_advisory_lock(hashtext('bullmq:evnotify:notify'))`)
      const worker = serve(jobs)
      for (const times of [1, 2, 3]) {
        await jobs.add(greet, { text: 'hello' })
        await worker.untilDone(times)
      }
      await client.query('select pg_advisory_unlock_all()')
    })

    expect(await untilHeld(jobs)).toBe((await listening())[0])
  })

  it('listens for all its queues on one connection, and on a new one when that is lost', async () => {
    const jobs = await open()
    const worker = serve(jobs)
    const others = (['fetch', 'photos', 'maintenance'] as const).map((name) => jobs.serve(name, async () => {}, timing))
    const listeners = () =>
      vi.waitFor(async () => {
        const pids = await listening()
        expect(pids).toHaveLength(4)
        return new Set(pids)
      })

    const before = await listeners()
    expect(before.size).toBe(1)
    await administer(database.url, (client) => client.query('select pg_terminate_backend($1)', [...before]))
    const after = await listeners()
    expect(after.size).toBe(1)
    expect(after).not.toEqual(before)

    await jobs.add(greet, { text: 'hello' })
    await worker.untilDone(1)
    await Promise.all(others.map((other) => other.close()))
    expect(await listening()).toHaveLength(1)
    await jobs.add(greet, { text: 'are you still there?' })
    await worker.untilDone(2)
    await worker.close()
    expect(await listening()).toEqual([])
  })

  it('counts a worker whose queue is empty while the other workers of the process listen already', async () => {
    const jobs = await open()
    const first = serve(jobs)
    await vi.waitFor(async () => expect(await jobs.workers('notify')).toBe(1))

    const second = jobs.serve('maintenance', async () => {}, timing)
    await vi.waitFor(async () => expect(await jobs.workers('maintenance')).toBe(1))

    await first.close()
    await second.close()
    expect(await jobs.workers('maintenance')).toBe(0)
  })

  it('closes its workers although the listening connection does not respond', async () => {
    const jobs = await open()
    const workers = (['notify', 'fetch'] as const).map((name) => jobs.serve(name, async () => {}, timing))
    await vi.waitFor(async () => expect(await listening()).toHaveLength(2))
    const [frozen = Number.NaN] = await listening()

    process.kill(frozen, 'SIGSTOP')
    try {
      await Promise.all(workers.map((worker) => worker.close()))
      await close(jobs)
    } finally {
      process.kill(frozen, 'SIGCONT')
    }

    await vi.waitFor(async () => expect(await listening()).toEqual([]))
  })

  /** Sessions that hold the listening lock of a queue, each once. */
  async function listening(): Promise<readonly number[]> {
    const { rows } = await administer(database.url, (client) =>
      client.query(`select pid from pg_locks where locktype = 'advisory' and mode = 'ShareLock'
        and database = (select oid from pg_database where datname = current_database())`),
    )
    return rows.map(({ pid }) => pid)
  }

  /**
   * A worker tries to take the lock whenever it begins to wait; a job that is being added or finished blocks it. Returns the
   * new holder, which differs from the previous one.
   */
  async function untilHeld(jobs: Jobs, before?: number): Promise<number> {
    return vi.waitFor(async () => {
      await jobs.add(greet, { text: 'wait again' })
      await untilEmpty(jobs)
      const [holder, ...others] = await holders()
      if (holder === undefined || holder === before || others.length > 0)
        throw new Error('No other session holds the lock yet.')
      return holder
    })
  }

  async function untilEmpty(jobs: Jobs): Promise<void> {
    const nothing = { waiting: 0, active: 0, delayed: 0, failed: 0 }
    await vi.waitFor(async () => expect(await jobs.counts('notify')).toEqual(nothing))
  }

  async function holders(): Promise<readonly number[]> {
    const { rows } = await administer(database.url, (client) =>
      client.query(`select pid from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock'
        and database = (select oid from pg_database where datname = current_database())`),
    )
    return rows.map(({ pid }) => pid)
  }

  it('stores the data of a job unchanged', async () => {
    const jobs = await open()
    await jobs.add(greet, { text: 'again and '.repeat(10_000) })
    const compressed = await administer(database.url, async (client) => {
      const { rows } = await client.query('select pg_column_compression(data) as method from bullmq.job')
      return rows
    })
    expect(compressed).toEqual([{ method: null }])
  })
})
