import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import { giveUpRow } from '../../src/jobs/outbox/give-up-rows.js'
import { deleteOutboxRows, loadJob } from '../../src/jobs/outbox/load-job.js'
import { findMessageRows } from '../../src/jobs/outbox/message-rows.js'
import { findOverdueRows, sweepAllNow } from '../../src/jobs/outbox/sweep-rows.js'
import type { OutboxRow } from '../../src/jobs/queues/add-jobs.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import type { HandlerTable } from '../../workers/run-job.js'
import { startWorkers } from '../../workers/start-workers.js'
import { sweep } from '../../workers/sweeper.js'
import { openTcpProxy } from '../support/http/tcp-proxy.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'

const greet = defineJob<{ name: string }>()('notify', 'greet', retriedForHours)

/** PostgreSQL makes a custom plan for each of the first executions. */
const PLANNED_AFTER = 6
const MANY_ROWS = 2_000

/** A sequential scan instead of an index scan. */
async function rowsReadWhile(db: Knex, work: () => Promise<unknown>): Promise<number> {
  const rowsRead = async () => {
    await db.raw('select pg_stat_force_next_flush()')
    const { rows } = await db.raw(`select seq_tup_read from pg_stat_user_tables where relname = 'outbox'`)
    return Number(rows[0].seq_tup_read)
  }
  const before = await rowsRead()
  await work()
  return (await rowsRead()) - before
}

describe.each(queueBackends)('the outbox, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterAll(() => stores.close())
  beforeEach(async () => {
    await pod.db('outbox').delete()
    await stores.emptyQueue()
  })

  async function queued(): Promise<number> {
    return (await pod.jobs.counts('notify')).waiting
  }

  async function untilQueued(jobs: number): Promise<void> {
    await vi.waitFor(async () => expect(await queued()).toBe(jobs), { interval: 20 })
  }

  /** Simulates a lost enqueue after its grace period of five seconds. */
  async function leaveBehind(name: string): Promise<void> {
    await pod
      .db('outbox')
      .insert({ queue: 'notify', name: 'greet', data: JSON.stringify({ name }), sweepAt: new Date(0) })
  }

  it('enqueues the job of a row after its transaction has committed', async () => {
    await pod.db.transaction(async (transaction) => {
      await enqueueJob(pod, transaction, greet, { name: 'Alice' })
      expect(await queued()).toBe(0)
    })

    await untilQueued(1)
    const row = await pod.db('outbox').first()
    expect(row).toMatchObject({ queue: 'notify', name: 'greet', data: { name: 'Alice' }, failedAt: null })
    expect((await pod.jobs.oldestWaiting('notify'))?.data).toEqual({ outboxId: row.id })
  })

  it('enqueues no job when its transaction is rolled back', async () => {
    const broken = pod.db.transaction(async (transaction) => {
      await enqueueJob(pod, transaction, greet, { name: 'Alice' })
      throw new Error('no')
    })
    await expect(broken).rejects.toThrow('no')
    await pod.db.transaction((transaction) => enqueueJob(pod, transaction, greet, { name: 'Bob' }))

    await untilQueued(1)
    expect(await pod.db('outbox').select('data')).toEqual([{ data: { name: 'Bob' } }])
  })

  it('waits for the outermost of nested transactions', async () => {
    await pod.db.transaction(async (outer) => {
      await outer.transaction((inner) => enqueueJob(pod, inner, greet, { name: 'Alice' }))
      expect(await queued()).toBe(0)
      await enqueueJob(pod, outer, greet, { name: 'Bob' })
    })

    await untilQueued(2)
  })

  it('enqueues in one batch the rows committed while another batch is being enqueued', async () => {
    const handedOver: number[] = []
    let goOn = () => {}
    const first = new Promise<void>((resolve) => {
      goOn = resolve
    })
    async function addOutboxRows(rows: readonly OutboxRow[]): Promise<void> {
      handedOver.push(rows.length)
      await first
      await pod.jobs.addOutboxRows(rows)
    }
    const slow = { ...pod, jobs: { ...pod.jobs, addOutboxRows } }
    const commit = (name: string) => pod.db.transaction((transaction) => enqueueJob(slow, transaction, greet, { name }))

    await commit('Alice')
    await vi.waitFor(() => expect(handedOver).toEqual([1]))
    for (const name of ['Bob', 'Carol', 'Dan']) await commit(name)
    expect(handedOver).toEqual([1])
    goOn()

    await untilQueued(4)
    expect(handedOver).toEqual([1, 3])
  })

  it('the workers of an isolated copy do the work of rows of their queues, such as restored messages, and of no other', async () => {
    await leaveBehind('Alice')
    await pod.db('outbox').insert({ queue: 'mail', name: 'send', data: '{}', sweepAt: new Date(0) })
    const copy = { ...pod, config: { ...pod.config, isolated: true } }
    const greeted: string[] = []
    const handlers = {
      notify: {
        greet: async (_: unknown, { data }: { data: { name: string } }) => void greeted.push(data.name),
      } as unknown as HandlerTable,
    }
    const workers = startWorkers(copy, { queues: ['notify'], handlers })
    try {
      await vi.waitFor(() => expect(greeted).toEqual(['Alice']))
      expect((await pod.jobs.counts('mail')).waiting).toBe(0)
    } finally {
      await workers.close()
    }
  })

  it('finds its rows by an index, also with a plan made when the table was short', async () => {
    const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: stores.databaseUrl, pool: 1, applicationName: 'test' })
    const takeOne = async (id: number) => [await loadJob(db, { outboxId: id }), await deleteOutboxRows(db, [id])]
    try {
      await db.raw('vacuum outbox')
      for (let time = 0; time < PLANNED_AFTER; time += 1) await takeOne(0)
      await db.raw(
        `insert into outbox (queue, name, data) select 'notify', 'greet', '{}' from generate_series(1, ${MANY_ROWS})`,
      )
      const { rows } = await db.raw('select max(id) as id from outbox')
      const [{ id }] = rows

      expect(await rowsReadWhile(db, () => findMessageRows(db, [id]))).toBe(0)
      expect(await rowsReadWhile(db, () => takeOne(id))).toBe(0)
    } finally {
      await db.destroy()
    }
  })

  it('is swept when the enqueue was lost', async () => {
    const proxy = await openTcpProxy(Number(new URL(stores.redisUrl ?? stores.databaseUrl).port))
    const cutOff = await stores.openPod(stores.queueThrough(proxy))
    await proxy.refuse()
    const withoutQueue = { ...pod, jobs: cutOff.jobs }
    await pod.db.transaction((transaction) => enqueueJob(withoutQueue, transaction, greet, { name: 'Alice' }))
    await sweepAllNow(pod.db)

    await expect(sweep(withoutQueue)).rejects.toThrow('queue')
    expect(await queued()).toBe(0)

    await sweep(pod)
    expect(await queued()).toBe(1)
  })

  it('is swept once for the same row, for any number of sweeps', async () => {
    await leaveBehind('Alice')

    await sweep(pod)
    await sweepAllNow(pod.db)
    await sweep(pod)

    expect(await queued()).toBe(1)
  })

  it('is swept by one process at a time', async () => {
    await leaveBehind('Alice')

    await pod.db.transaction(async (transaction) => {
      await transaction.raw(`select pg_advisory_xact_lock(hashtextextended('sweep', 0))`)
      await sweep(pod)
      expect(await queued()).toBe(0)
    })

    await sweep(pod)
    expect(await queued()).toBe(1)
  })

  it('restores its jobs when the queue has lost all data', async () => {
    await pod.db.transaction(async (transaction) => {
      for (const name of ['Alice', 'Bob', 'Carol']) await enqueueJob(pod, transaction, greet, { name })
    })
    await untilQueued(3)

    await stores.emptyQueue()
    expect(await queued()).toBe(0)
    await sweepAllNow(pod.db)
    await sweep(pod)

    expect(await queued()).toBe(3)
  })

  if (backend.store === 'Redis') {
    it('restores a job when Redis has evicted its list entry and kept its deduplication key', async () => {
      await leaveBehind('Alice')
      await sweep(pod)
      const lost = await pod.jobs.oldestWaiting('notify')

      await stores.redis?.evict('notify:wait')
      await sweepAllNow(pod.db)
      await sweep(pod)

      expect(await queued()).toBe(1)
      const found = await pod.jobs.oldestWaiting('notify')
      expect(found?.data).toEqual(lost?.data)
      expect(found?.id).not.toBe(lost?.id)
    })
  }

  it('excludes the rows of dead letters from the sweep', async () => {
    await leaveBehind('Alice')
    await giveUpRow(
      pod.db,
      await pod
        .db('outbox')
        .first('id')
        .then(({ id }) => id),
      { fault: 'internal' },
    )

    await sweep(pod)

    expect(await queued()).toBe(0)
  })

  it('makes dead letters of rows for a queue that this version does not have', async () => {
    await pod.db('outbox').insert({ queue: 'of-tomorrow', name: 'greet', sweepAt: new Date(0) })

    await sweep(pod)

    expect(await pod.db('outbox').whereNotNull('failedAt').pluck('queue')).toEqual(['of-tomorrow'])
  })

  it('defers swept rows by a minute, and returns at most the requested number of rows to the sweeper', async () => {
    for (const name of ['Alice', 'Bob', 'Carol']) await leaveBehind(name)

    expect(await pod.db.transaction((transaction) => findOverdueRows(transaction, ['notify'], 2))).toHaveLength(2)
    expect(await pod.db.transaction((transaction) => findOverdueRows(transaction, ['fetch'], 2))).toEqual([])
    await sweep(pod)
    expect(await pod.db.transaction((transaction) => findOverdueRows(transaction, ['notify'], 2))).toEqual([])
  })
})
