import pg from 'pg'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineJob, patient } from '../../src/jobs/definitions.js'
import { openJobQueues } from '../../src/jobs/queues/job-queues.js'
import { administer, createTestDatabase, type TestDatabase } from '../support/database.js'

const greet = defineJob<{ text: string }>()('notify', 'greet', patient)
const timing = { concurrency: 4, lock: 5_000, stalledCheck: 5_000, backoff: () => 10 }
const LATER = { timeout: 10_000 }
const log = pino({ level: 'silent' })

type Jobs = Awaited<ReturnType<typeof openJobQueues>>

let database: TestDatabase
let opened: Set<Jobs>
beforeEach(async () => {
  database = await createTestDatabase()
  opened = new Set()
})
afterEach(async () => {
  for (const jobs of opened) await close(jobs)
  await database.drop()
})

async function open(): Promise<Jobs> {
  const jobs = await openJobQueues({ redisUrl: undefined, databaseUrl: database.url, log })
  opened.add(jobs)
  return jobs
}

async function close(jobs: Jobs): Promise<void> {
  opened.delete(jobs)
  await jobs.close()
}

/** What was read of the table with the jobs, as the sessions that are closed have told. */
async function rowsRead(): Promise<{ readonly scans: number; readonly byIndex: number }> {
  return administer(database.url, async (client) => {
    const { rows } = await client.query(`
      select
        (select seq_scan from pg_stat_user_tables where relid = 'bullmq.job'::regclass)::int as scans,
        (select sum(idx_tup_read) from pg_stat_user_indexes where relid = 'bullmq.job'::regclass)::int as "byIndex"`)
    return rows[0]
  })
}

/** Serves the queue, and knows how many jobs are done. */
function serve(jobs: Jobs, concurrency = 4) {
  let done = 0
  const run = async () => {
    done += 1
  }
  const worker = jobs.serve('notify', run, { ...timing, concurrency })
  return {
    done: () => done,
    untilDone: (count: number) => vi.waitFor(() => expect(done).toBeGreaterThanOrEqual(count), LATER),
    close: () => worker.close(),
  }
}

const greetings = (count: number) => Array.from({ length: count }, () => ({ text: 'hello' }))

describe('a long queue in PostgreSQL costs no more for a job than a short one', () => {
  const LONG = 1_000
  const TAKEN = 100
  /** Those in hand, those whose lock is being taken, and dead rows that no vacuum has removed yet. */
  const READ_FOR_A_JOB = 200

  it('on connections that have known it empty', async () => {
    const jobs = await open()
    await administer(database.url, (client) => client.query('vacuum analyze bullmq.job'))
    const worker = serve(jobs, 1)
    // A plan that is kept for good is made when a statement has run five times.
    for (let times = 1; times <= 10; times += 1) {
      await jobs.enqueue(greet, { text: 'hello' })
      await worker.untilDone(times)
    }
    await jobs.enqueueAll(greet, greetings(LONG))
    await worker.untilDone(TAKEN)
    await worker.close()
    await close(jobs)

    const { scans, byIndex } = await rowsRead()
    expect(scans).toBe(0)
    expect(byIndex / worker.done()).toBeLessThan(READ_FOR_A_JOB)
  })

  it('with statistics of a moment when nothing waited', async () => {
    const jobs = await open()
    await jobs.enqueueAll(greet, greetings(300))
    await administer(database.url, async (client) => {
      await client.query(`update bullmq.job set state = 'active'`)
      await client.query('analyze bullmq.job')
      await client.query('delete from bullmq.job')
      await client.query('vacuum (truncate off) bullmq.job')
    })
    await jobs.enqueueAll(greet, greetings(LONG))
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

  it('has a job on disk before it is acknowledged, and lets no worker wait for the disk', async () => {
    const query = pg.Client.prototype.query
    const asked = new Map<pg.Client, string>()
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...rest: unknown[]) {
      asked.set(this, `${asked.get(this) ?? ''}\n${rest[0]}`)
      return Reflect.apply(query, this, rest)
    })
    const jobs = await open()
    await jobs.enqueue(greet, { text: 'hello' })
    await jobs.enqueueAll(greet, greetings(2))
    const worker = serve(jobs)
    await worker.untilDone(3)
    await worker.close()

    const told = [...asked.values()]
    const producers = told.filter((all) => /add_job/.test(all))
    const workers = told.filter((all) => /move_to_/.test(all))
    expect(producers).not.toEqual([])
    expect(workers).not.toEqual([])
    expect(producers.filter((all) => all.includes('synchronous_commit'))).toEqual([])
    expect(workers.filter((all) => !all.includes('synchronous_commit = off'))).toEqual([])
  })

  it('tells nobody of events while a worker listens, and the next worker takes over', async () => {
    await administer(database.url, async (client) => {
      const heard: (string | undefined)[] = []
      client.on('notification', ({ payload }) => heard.push(payload))
      await client.query('listen bullmq_events')
      /** Everything that was told until here has been heard. */
      const heardSoFar = async () => {
        await client.query(`notify bullmq_events, 'end'`)
        await vi.waitFor(() => expect(heard).toContain('end'), LATER)
        return heard.splice(0).slice(0, -1)
      }
      const jobs = await open()
      await jobs.enqueue(greet, { text: 'nobody is there yet' })
      expect(await heardSoFar()).toEqual(['notify'])

      const first = serve(jobs)
      const holder = await untilHeld(jobs)
      await heardSoFar()
      await jobs.enqueue(greet, { text: 'for the first' })
      await untilEmpty(jobs)
      expect(await heardSoFar()).toEqual([])

      const others = await open()
      const second = serve(others)
      await first.close()
      await untilHeld(jobs, holder)
      await heardSoFar()
      await jobs.enqueue(greet, { text: 'for the second' })
      await untilEmpty(jobs)
      expect(await heardSoFar()).toEqual([])
      expect(second.done()).toBeGreaterThan(0)
      await second.close()
    })
  })

  it('listens for all its queues on one connection, and on the next one when that is gone', async () => {
    const jobs = await open()
    const worker = serve(jobs)
    const others = (['fetch', 'photos', 'maintenance'] as const).map((name) => jobs.serve(name, async () => {}, timing))
    const listeners = () =>
      vi.waitFor(async () => {
        const pids = await listening()
        expect(pids).toHaveLength(4)
        return new Set(pids)
      }, LATER)

    const before = await listeners()
    expect(before.size).toBe(1)
    await administer(database.url, (client) => client.query('select pg_terminate_backend($1)', [...before]))
    const after = await listeners()
    expect(after.size).toBe(1)
    expect(after).not.toEqual(before)

    await jobs.enqueue(greet, { text: 'hello' })
    await worker.untilDone(1)
    await Promise.all(others.map((other) => other.close()))
    expect(await listening()).toHaveLength(1)
    await jobs.enqueue(greet, { text: 'are you still there?' })
    await worker.untilDone(2)
    await worker.close()
    expect(await listening()).toEqual([])
  })

  it('lets its workers go although the connection on which they listen answers nothing', async () => {
    const jobs = await open()
    const workers = (['notify', 'fetch'] as const).map((name) => jobs.serve(name, async () => {}, timing))
    await vi.waitFor(async () => expect(await listening()).toHaveLength(2), LATER)
    const [frozen = Number.NaN] = await listening()

    process.kill(frozen, 'SIGSTOP')
    try {
      await Promise.all(workers.map((worker) => worker.close()))
      await close(jobs)
    } finally {
      process.kill(frozen, 'SIGCONT')
    }

    await vi.waitFor(async () => expect(await listening()).toEqual([]), LATER)
  })

  /** Who says that it serves a queue, once for each. */
  async function listening(): Promise<readonly number[]> {
    const { rows } = await administer(database.url, (client) =>
      client.query(`select pid from pg_locks where locktype = 'advisory' and mode = 'ShareLock'
        and database = (select oid from pg_database where datname = current_database())`),
    )
    return rows.map(({ pid }) => pid)
  }

  /**
   * A worker tries for the lock whenever it begins to wait; a job that is just being added or done is in its way. Returns who
   * has it, which is not the one before.
   */
  async function untilHeld(jobs: Jobs, before?: number): Promise<number> {
    return vi.waitFor(async () => {
      await jobs.enqueue(greet, { text: 'wait again' })
      await untilEmpty(jobs)
      const [holder, ...others] = await holders()
      if (holder === undefined || holder === before || others.length > 0) throw new Error('Nobody else has it yet.')
      return holder
    }, LATER)
  }

  async function untilEmpty(jobs: Jobs): Promise<void> {
    const nothing = { waiting: 0, active: 0, delayed: 0, failed: 0 }
    await vi.waitFor(async () => expect(await jobs.counts('notify')).toEqual(nothing), LATER)
  }

  async function holders(): Promise<readonly number[]> {
    const { rows } = await administer(database.url, (client) =>
      client.query(`select pid from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock'
        and database = (select oid from pg_database where datname = current_database())`),
    )
    return rows.map(({ pid }) => pid)
  }

  it('stores what a job carries as it is', async () => {
    const jobs = await open()
    await jobs.enqueue(greet, { text: 'again and '.repeat(10_000) })
    const compressed = await administer(database.url, async (client) => {
      const { rows } = await client.query('select pg_column_compression(data) as method from bullmq.job')
      return rows
    })
    expect(compressed).toEqual([{ method: null }])
  })
})
