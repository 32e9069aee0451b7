import type { Job } from 'bullmq'
import pg from 'pg'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DelayedCompletions } from '../../src/jobs/bullmq/delayed-completions.js'
import { EmptyQueueState, type FetchedQueueState } from '../../src/jobs/bullmq/empty-queue-state.js'
import { openJobExchange } from '../../src/jobs/bullmq/exchange-jobs.js'
import { SharedListener } from '../../src/jobs/bullmq/postgres-connections.js'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { openJobQueues } from '../../src/jobs/queues/job-queues.js'
import { createTestDatabase, type TestDatabase } from '../support/databases/test-database.js'

const greet = defineJob<{ text: string }>()('notify', 'greet', retriedForHours)
const timing = { concurrency: 64, lockMs: 5_000, stalledCheckMs: 5_000, backoff: () => 10 }
const log = pino({ level: 'silent' })
const LOCK_MS = 5_000

let database: TestDatabase
let jobs: Awaited<ReturnType<typeof openJobQueues>>
let pool: pg.Pool
beforeEach(async () => {
  database = await createTestDatabase()
  jobs = await openJobQueues({ redisUrl: undefined, databaseUrl: database.url, log })
  pool = new pg.Pool({
    connectionString: database.url,
    onConnect: (client) => client.query('set search_path = bullmq'),
  })
  // A connection that is closing when the database is dropped reports an error.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('error', () => {})
})
afterEach(async () => {
  await jobs.close()
  await pool.end()
  await database.drop()
})

function open() {
  const query = vi.spyOn(pool, 'query')
  const rests: FetchedQueueState[] = []
  const empty = { beginFetch: () => (rest: FetchedQueueState) => void rests.push(rest) }
  const finish = openJobExchange({ pool, queue: 'notify', lockMs: LOCK_MS, worker: 'somebody', empty })
  return { query, finish, rests }
}

async function add(...texts: readonly string[]): Promise<void> {
  await jobs.addAll(
    greet,
    texts.map((text) => ({ text })),
  )
}

/** Ids and tokens of active jobs. */
async function take(...texts: readonly string[]) {
  await add(...texts)
  const { rows } = await pool.query<{ id: string; token: string }>(
    `update job set state = 'active', lock_token = 'token ' || id where data ->> 'text' = any($1)
     returning id, lock_token as token`,
    [texts],
  )
  return rows.toSorted((one, other) => Number(one.id) - Number(other.id))
}

async function stateOf(text: string): Promise<string | undefined> {
  const { rows } = await pool.query(`select state from job where data ->> 'text' = $1`, [text])
  return rows[0]?.state
}

describe('the end of a job of an empty queue', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  async function isHeld(ends: DelayedCompletions): Promise<boolean> {
    const end = ends.delayCompletion().then(() => 'ended')
    await vi.advanceTimersByTimeAsync(0)
    return (await Promise.race([end, Promise.resolve('held')])) === 'held'
  }

  it('waits for the next job while jobs follow each other quickly, and for no longer than a moment', async () => {
    const ends = new DelayedCompletions()
    ends.recordFetch()
    expect(await isHeld(ends)).toBe(false)

    await vi.advanceTimersByTimeAsync(50)
    ends.recordFetch()
    const [released, late] = [vi.fn(), vi.fn()]
    void ends.delayCompletion().then(released)
    expect(await isHeld(ends)).toBe(true)
    ends.release()
    await vi.advanceTimersByTimeAsync(0)
    expect(released).toHaveBeenCalled()

    void ends.delayCompletion().then(late)
    await vi.advanceTimersByTimeAsync(99)
    expect(late).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(late).toHaveBeenCalled()

    ends.recordFetch()
    expect(await isHeld(ends)).toBe(false) // the last job is long ago
  })

  it('waits for nothing when the worker closes', async () => {
    const ends = new DelayedCompletions()
    ends.recordFetch()
    ends.recordFetch()
    const released = vi.fn()
    void ends.delayCompletion().then(released)
    ends.stopDelaying()
    await vi.advanceTimersByTimeAsync(0)

    expect(released).toHaveBeenCalled()
    expect(await isHeld(ends)).toBe(false)
  })
})

describe('jobs that are finished at the same moment', () => {
  it('are finished by one statement, which starts one waiting job for each', async () => {
    const active = await take('one', 'two', 'three')
    await add('four', 'five', 'six', 'seven')
    const { query, finish } = open()
    const before = Date.now()

    const results = await Promise.all(active.map((job) => finish({ ...job, wantsNext: job.id !== active[1]?.id })))

    expect(query).toHaveBeenCalledTimes(1)
    const taken = active.map(({ token }, place) => results[place]?.nextJobs.get(token))
    expect(taken.map((job) => job && JSON.parse(job.data).text)).toEqual(['four', undefined, 'five'])
    const { rows } = await pool.query(
      `select data ->> 'text' as text, state, lock_token, locked_until_ms::float8, processed_by from job order by seq`,
    )
    expect(rows).toEqual([
      {
        text: 'four',
        state: 'active',
        lock_token: active[0]?.token,
        locked_until_ms: expect.any(Number),
        processed_by: 'somebody',
      },
      {
        text: 'five',
        state: 'active',
        lock_token: active[2]?.token,
        locked_until_ms: expect.any(Number),
        processed_by: 'somebody',
      },
      { text: 'six', state: 'waiting', lock_token: null, locked_until_ms: null, processed_by: null },
      { text: 'seven', state: 'waiting', lock_token: null, locked_until_ms: null, processed_by: null },
    ])
    expect(rows[0].locked_until_ms).toBeGreaterThanOrEqual(before + LOCK_MS)
  })

  it.each([
    ['whose lock another worker holds', `update job set lock_token = 'of somebody else'`],
    ['that were taken away', `update job set state = 'waiting', lock_token = null`],
    ['that hold a name', `update job set dedup_id = 'a name'`],
    ['that are part of something', `update job set parent_queue = 'notify', parent_id = '1'`],
    ['that others have to be done before', `update job set pending_deps = 1`],
  ])('are left alone %s, and nothing is taken for them', async (_name, change) => {
    const [job] = await take('one')
    if (job === undefined) throw new Error('No job is active.')
    await pool.query(change)
    const state = await stateOf('one')
    await add('two')

    const { notFinished, nextJobs } = await open().finish({ ...job, wantsNext: true })

    expect([...notFinished]).toEqual([job.token])
    expect(nextJobs.size).toBe(0)
    expect(await stateOf('one')).toBe(state)
    expect(await stateOf('two')).toBe('waiting')
  })

  it('are finished in their own queue only, and only by the holder of the lock', async () => {
    const [job] = await take('one')
    if (job === undefined) throw new Error('No job is active.')
    await pool.query(`insert into job (queue, id, seq, name, state, added_at_ms, lock_token)
      select 'fetch', id, seq, name, state, added_at_ms, lock_token from job`)
    await pool.query(
      `insert into job (queue, id, seq, name, state, added_at_ms) values ('fetch', 'next', 0, 'x', 'waiting', 0)`,
    )
    await add('two', 'three')
    const { finish } = open()

    const [mine, theirs] = await Promise.all([
      finish({ ...job, wantsNext: true }),
      finish({ ...job, token: 'lost', wantsNext: true }),
    ])

    expect([mine, theirs].map(({ notFinished }) => [...notFinished])).toEqual([['lost'], ['lost']])
    expect(mine.nextJobs.size).toBe(1)
    expect(await Promise.all(['two', 'three'].map(stateOf))).toEqual(['active', 'waiting'])
    const { rows } = await pool.query(`select id, state from job where queue = 'fetch' order by seq`)
    expect(rows).toEqual([
      { id: 'next', state: 'waiting' },
      { id: job.id, state: 'active' },
    ])
  })

  it('start urgent jobs first, and skip jobs that another worker is taking', async () => {
    const [job] = await take('one')
    if (job === undefined) throw new Error('No job is active.')
    await add('ordinary', 'urgent', 'next')
    await pool.query(
      `update job set priority = case data ->> 'text' when 'ordinary' then 9 when 'urgent' then 0 else 1 end`,
    )
    const holder = await pool.connect()
    try {
      await holder.query('begin')
      await holder.query(`select from job where data ->> 'text' = 'urgent' for update`)
      await open().finish({ ...job, wantsNext: true })
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    expect(await Promise.all(['ordinary', 'urgent', 'next'].map(stateOf))).toEqual(['waiting', 'waiting', 'active'])
  })

  it('start no job when no worker needs one', async () => {
    const [job] = await take('one')
    if (job === undefined) throw new Error('No job is active.')
    await jobs.add(greet, { text: 'soon' }, { delay: 1 })
    await pool.query('update job set process_at_ms = process_at_ms - 10')

    await open().finish({ ...job, wantsNext: false })

    expect(await stateOf('soon')).toBe('delayed')
  })

  it('do not wait for a job that another session has locked', async () => {
    const [held, free] = await take('held', 'free')
    if (held === undefined || free === undefined) throw new Error('No job is active.')
    const holder = await pool.connect()
    try {
      await holder.query('begin')
      await holder.query('select from job where id = $1 for update', [held.id])
      const { finish } = open()
      const [{ notFinished }] = await Promise.all([
        finish({ ...held, wantsNext: false }),
        finish({ ...free, wantsNext: false }),
      ])
      expect([...notFinished]).toEqual([held.token])
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    expect([await stateOf('held'), await stateOf('free')]).toEqual(['active', undefined])
  })

  it.each([
    ['is paused', 'paused', '1', 'waiting'],
    ['is not paused any more', 'paused', '0', 'active'],
    ['can store only as many', 'concurrency', '1', 'waiting'],
    ['may do so many in a second', 'max', '1', 'waiting'],
  ])('take the next one as the library does where the queue %s', async (_name, field, value, state) => {
    const [job] = await take('one')
    if (job === undefined) throw new Error('No job is active.')
    await add('two')
    await pool.query(`insert into meta (queue, field, value) values ('notify', $1, $2)`, [field, value])

    const { notFinished } = await open().finish({ ...job, wantsNext: true })

    expect(notFinished.size).toBe(0)
    expect(await stateOf('one')).toBe(undefined)
    expect(await stateOf('two')).toBe(state)
  })

  it('start delayed jobs that are due', async () => {
    const [job] = await take('one')
    if (job === undefined) throw new Error('No job is active.')
    await jobs.add(greet, { text: 'soon' }, { delay: 1 })
    await jobs.add(greet, { text: 'later' }, { delay: 60_000 })
    await pool.query('update job set process_at_ms = process_at_ms - 10')
    const { finish } = open()

    await finish({ ...job, wantsNext: true })

    expect([await stateOf('soon'), await stateOf('later')]).toEqual(['waiting', 'delayed'])
  })
})

describe('a worker that wants a job', () => {
  it('gets one without finishing any, and the state of the queue after it', async () => {
    await add('one', 'two')
    await jobs.add(greet, { text: 'later' }, { delay: 60_000 })
    const { finish, rests } = open()

    const [one, two, none] = await Promise.all(['a', 'b', 'c'].map((token) => finish({ token, wantsNext: true })))

    const taken = ['a', 'b', 'c'].map((token) => one?.nextJobs.get(token)?.data)
    expect(taken.map((data) => data && JSON.parse(data).text)).toEqual(['one', 'two', undefined])
    expect([two, none]).toEqual([one, one])
    expect(rests).toEqual([{ isEmpty: true, nextDelayedAt: expect.any(Number) }])
  })

  it('gets the information that more jobs wait', async () => {
    await add('one', 'two')
    const { finish, rests } = open()
    await finish({ token: 'a', wantsNext: true })
    await finish({ token: 'b', wantsNext: true })

    expect(rests.map(({ isEmpty }) => isEmpty)).toEqual([false, true])
  })

  it('leaves a paused queue to the library', async () => {
    await add('one')
    await pool.query(`insert into meta (queue, field, value) values ('notify', 'paused', '1')`)
    const { finish, rests } = open()

    expect(await finish({ token: 'a', wantsNext: true })).toMatchObject({ isLimited: true, nextJobs: new Map() })
    expect(rests).toEqual([{ isEmpty: false, nextDelayedAt: null }])
  })
})

describe('an empty queue', () => {
  const rest = { isEmpty: true, nextDelayedAt: null }

  async function listen() {
    const listener = new SharedListener(pool as never)
    await listener.join().getListenClient()
    return { listener, empty: new EmptyQueueState(listener, 'notify'), close: () => listener.leave() }
  }

  it('is known as empty until a job of it is notified, whichever process has added it', async () => {
    const { empty, close } = await listen()
    empty.beginFetch()(rest)
    expect(empty.emptyUntil()).toBe(Number.POSITIVE_INFINITY)

    const waited = empty.wait(10_000)
    await pool.query(`select pg_notify('bullmq_jobs', 'fetch')`)
    expect(empty.emptyUntil()).toBe(Number.POSITIVE_INFINITY)
    await add('one')

    expect(await waited).toBe(true)
    expect(empty.emptyUntil()).toBe(undefined)
    await close()
  })

  it('is not known as empty when a job is notified after the look has begun', async () => {
    const { listener, empty, close } = await listen()
    const recordQueueState = empty.beginFetch()
    const version = listener.versionOf('notify')
    await add('one')
    await vi.waitFor(() => expect(listener.versionOf('notify')).not.toBe(version))
    recordQueueState(rest)

    expect(empty.emptyUntil()).toBe(undefined)
    await close()
  })

  it('is not known as empty when a delayed job is due, or when the connection is lost', async () => {
    const { listener, empty, close } = await listen()
    empty.beginFetch()({ isEmpty: true, nextDelayedAt: Date.now() - 1 })
    expect(empty.emptyUntil()).toBe(undefined)

    empty.beginFetch()(rest)
    const waited = empty.wait(10_000)
    listener.emit('listenerinvalidated')

    expect(await waited).toBe(false)
    expect(empty.emptyUntil()).toBe(undefined)
    await close()
  })

  it('is not known as empty after a wait without a notification: the connection may be lost', async () => {
    const { empty, close } = await listen()
    empty.beginFetch()(rest)

    expect(await empty.wait(1)).toBe(false)
    expect(empty.emptyUntil()).toBe(undefined)
    await close()
  })
})

describe('a worker', () => {
  const STATEMENT = 'exchanged-jobs'

  /** Records the statements of all workers that finish jobs from here on; `answer` may make them fail. */
  function watch(answer: () => void = () => undefined) {
    const query = pg.Pool.prototype.query
    const seen: unknown[] = []
    vi.spyOn(pg.Pool.prototype, 'query').mockImplementation(function (this: pg.Pool, ...rest: unknown[]) {
      const [asked] = rest
      if (typeof asked === 'object' && asked !== null && Reflect.get(asked, 'name') === STATEMENT) {
        const values: readonly unknown[] = Reflect.get(asked, 'values')
        const [, finished] = values
        const finishesNone = Array.isArray(finished) && finished.every((id) => id === null)
        if (finishesNone) return Reflect.apply(query, this, rest)
        seen.push(values)
        try {
          answer()
        } catch (error) {
          return Promise.reject(error)
        }
      }
      return Reflect.apply(query, this, rest)
    })
    return seen
  }
  afterEach(() => void vi.restoreAllMocks())

  it('reads a job in the same form as the worker of the library, with the same lock', async () => {
    const plainJobs = await openJobQueues({ redisUrl: undefined, databaseUrl: database.url, log, isTuned: false })
    const seen: Job[] = []
    const lockedFor: number[] = []
    const run = async (job: Job) => {
      const { rows } = await pool.query(
        'select (locked_until_ms - processed_at_ms)::int as ms from job where id = $1',
        [job.id],
      )
      lockedFor.push(rows[0].ms)
      seen.push(job)
    }
    try {
      for (const each of [plainJobs, jobs]) {
        const worker = each.serve('notify', run, { ...timing, concurrency: 1 })
        await add('one')
        await vi.waitFor(() => expect(seen).toHaveLength(each === plainJobs ? 1 : 2))
        await worker.close()
      }
    } finally {
      await plainJobs.close()
    }

    const [plain, tuned] = seen.map((job) => {
      const { id, token, timestamp, processedOn, finishedOn, ...rest } = JSON.parse(JSON.stringify(job))
      return {
        ...rest,
        id: typeof id,
        token: typeof token,
        timestamp: typeof timestamp,
        processedOn: typeof processedOn,
        stalledCounter: job.stalledCounter,
      }
    })
    expect(tuned).toEqual(plain)
    expect(lockedFor).toEqual([timing.lockMs, timing.lockMs])
  })

  it('needs two statements for a job of an idle queue: one to take it, one to finish it', async () => {
    const query = vi.spyOn(pg.Pool.prototype, 'query')
    const names: unknown[] = []
    const done: string[] = []
    const worker = jobs.serve('notify', async (job) => void done.push(job.data.text), timing)
    const isIdle = async (count: number) => {
      await vi.waitFor(async () => {
        expect(done).toHaveLength(count)
        expect((await pool.query(`select from job`)).rowCount).toBe(0)
      })
    }
    try {
      // Nothing is known about the queue until the worker has listened and then looked for a job.
      for (const [index, text] of ['one', 'two', 'three', 'four', 'five'].entries()) {
        if (text === 'three') query.mockClear()
        await add(text)
        await isIdle(index + 1)
      }
      // Before the worker closes, for which it looks once more.
      names.push(...query.mock.calls.map(([asked]) => asked as unknown))
    } finally {
      await worker.close()
    }

    const exchanged = names.filter((asked) => Reflect.get(Object(asked), 'name') === STATEMENT)
    const library = names.filter((asked) => /move_to_|next_signal|next_delay|state = 'waiting'/.test(String(asked)))
    expect([exchanged.length, library.length]).toEqual([6, 0])
  })

  it('runs each job once beside another worker', async () => {
    const finished = watch()
    const { texts, done } = await doAll()
    expect(done.toSorted()).toEqual(texts.toSorted())
    expect(finished.length).toBeGreaterThan(0)
  })

  it('does not repeat a job because others in its group could not be finished', async () => {
    let failures = 0
    watch(() => {
      failures += 1
      if (failures % 2 === 1) throw new Error('the connection is gone')
    })
    const { texts, done } = await doAll()
    expect(failures).toBeGreaterThan(0)
    expect(done.toSorted()).toEqual(texts.toSorted())
  })

  async function doAll() {
    const texts = Array.from({ length: 600 }, (_, number) => `${number}`)
    const done: string[] = []
    await add(...texts)
    const serve = () => jobs.serve('notify', async (job) => void done.push((job.data as { text: string }).text), timing)

    const workers = [serve(), serve()]
    const nothing = { waiting: 0, active: 0, delayed: 0, failed: 0 }
    await vi.waitFor(async () => expect(await jobs.counts('notify')).toEqual(nothing))
    await Promise.all(workers.map((worker) => worker.close()))
    return { texts, done }
  }
})
