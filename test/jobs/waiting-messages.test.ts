import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { resumeWaitingJob } from '../../src/jobs/definitions.js'
import type { EntityKey } from '../../src/jobs/waiting/entity-key.js'
import { lockEntityKeys } from '../../src/jobs/waiting/lock-entity-keys.js'
import { giveUpOutboxRow, resumeOverdue, resumeWaiting } from '../../src/jobs/waiting/resume-messages.js'
import { deferMessages, type NewWaitingMessage } from '../../src/jobs/waiting/store-waiting-messages.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'

const bob = 'person:bob@far.example'

function message(payload: string, difference: Partial<NewWaitingMessage> = {}): NewWaitingMessage {
  const acceptedAt = new Date('2026-01-02T03:04:05.678Z')
  return {
    waitsFor: bob,
    payload,
    acceptedAt,
    times: 0,
    isVerified: true,
    ...difference,
  }
}

describe.each(queueBackends)('messages that wait, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterAll(() => stores.close())
  beforeEach(async () => {
    await stores.emptyQueue()
    for (const table of ['outbox', 'waiting', 'posts', 'people']) await pod.db(table).delete()
  })

  /** Parks messages as a batch does that cannot process them yet. */
  async function park(...messages: NewWaitingMessage[]): Promise<void> {
    await pod.db.transaction(async (transaction) => {
      await lockEntityKeys(
        transaction,
        messages.map(({ waitsFor }) => waitsFor),
      )
      await deferMessages(pod, transaction, messages, [])
    })
  }

  /** Resumes messages as the transaction does that stores the entity they wait for. */
  async function storeBob(meanwhile = async () => {}): Promise<void> {
    await pod.db.transaction(async (transaction) => {
      await lockEntityKeys(transaction, [bob])
      await transaction('people').insert({ guid: '0123456789abcdef', address: 'bob@far.example', publicKey: 'key' })
      await meanwhile()
      await deferMessages(pod, transaction, [], [bob])
    })
  }

  const woken = () => pod.db('outbox').orderBy('id').select('queue', 'name', 'data', 'payload', 'acceptedAt')

  it('become outbox rows when the missing entity is stored, and are enqueued', async () => {
    await park(message('one'), message('two', { recipientGuid: 'fedcba9876543210' }))
    await park(message('other', { waitsFor: 'post:0000000000000001' }))

    await storeBob()

    const acceptedAt = new Date('2026-01-02T03:04:05.678Z')
    expect(await woken()).toEqual(
      expect.arrayContaining([
        {
          queue: 'inbound',
          name: 'receive-public',
          data: { recipientGuid: null, times: 1, last: false },
          payload: 'one',
          acceptedAt,
        },
        {
          queue: 'inbound-private',
          name: 'receive-private',
          data: { recipientGuid: 'fedcba9876543210', times: 1, last: false },
          payload: 'two',
          acceptedAt,
        },
      ]),
    )
    expect(await pod.db('waiting').pluck('payload')).toEqual(['other'])
    await vi.waitFor(async () => expect(await pod.jobs.counts('inbound')).toMatchObject({ waiting: 1 }))
    await vi.waitFor(async () => expect(await pod.jobs.counts('inbound-private')).toMatchObject({ waiting: 1 }))
  })

  it('are parked once when the same message arrives repeatedly', async () => {
    await park(message('one'), message('one'))
    await park(message('one'), message('one', { recipientGuid: 'fedcba9876543210' }))

    expect(await pod.db('waiting').count({ rows: '*' })).toEqual([{ rows: 2 }])
  })

  it('are resumed in transactions of bounded size when very many wait for one entity', async () => {
    const count = 2_500
    await pod.db.raw(
      `insert into waiting (waits_for, payload, accepted_at, name, digest, times, due_at)
       select ?, 'message ' || i, now(), 'receive-public', sha256(convert_to(i::text, 'UTF8')), 1, now() + interval '1 hour'
       from generate_series(1, ?::integer) as i`,
      [bob, count],
    )

    await storeBob()

    const rows = await pod.db('outbox').orderBy('id').select('name', 'data', 'payload')
    const rest = rows.filter(({ name }) => name === resumeWaitingJob.name)
    expect(rows).toHaveLength(1_001)
    expect(rest).toMatchObject([{ data: { entityKeys: [bob] } }])

    await resumeWaiting(pod, rest[0]?.data.entityKeys)

    const woken = await pod.db('outbox').where({ name: 'receive-public' }).orderBy('id').pluck('payload')
    expect(woken).toEqual(Array.from({ length: count }, (_, index) => `message ${index + 1}`))
    expect(await pod.db('waiting')).toEqual([])
  })

  it('are released, with their row of the quarantine, if one of the repeated messages is', async () => {
    await park(message('one'), message('two'), message('two', { quarantineId: 8, isReleased: true }))
    await park(message('one', { quarantineId: 7, isReleased: true }))
    await park(message('one'))

    await storeBob()

    const data = (await woken()).map((row) => [row.payload, row.data.quarantineId, row.data.isReleased])
    expect(data.toSorted()).toEqual([
      ['one', 7, true],
      ['two', 8, true],
    ])
  })

  it('are resumed at once when the missing entity was stored in the meantime', async () => {
    await storeBob()

    await park(message('one'))

    expect(await woken()).toMatchObject([{ payload: 'one' }])
    expect(await pod.db('waiting')).toEqual([])
  })

  it.each<[EntityKey, string, (pod: QueuePod) => Promise<unknown>]>([
    ['person:bob@far.example:3000', 'people', (pod) => insertBob(pod, 'bob@far.example:3000')],
    ['post:0000000000000001', 'posts', (pod) => insertPost(pod, '0000000000000001')],
    ['comment:0000000000000002', 'comments', (pod) => insertComment(pod, '0000000000000002')],
  ])('find %s among the %s', async (thing, _, insert) => {
    await insert(pod)

    await park(message('one', { waitsFor: thing }))

    expect(await woken()).toMatchObject([{ payload: 'one' }])
  })

  it('are resumed by an entity that is being stored while they are parked', async () => {
    let parking: Promise<void> | undefined
    await storeBob(async () => {
      parking = park(message('one'))
      await untilSomebodyWaitsForALock(pod)
    })
    await parking

    expect(await woken()).toMatchObject([{ payload: 'one' }])
    expect(await pod.db('waiting')).toEqual([])
  })

  it('are found by a transaction that stores the entity while they are being parked', async () => {
    let storing: Promise<void> | undefined
    await pod.db.transaction(async (transaction) => {
      await lockEntityKeys(transaction, [bob])
      await deferMessages(pod, transaction, [message('one')], [])
      storing = storeBob()
      await untilSomebodyWaitsForALock(pod)
    })
    await storing

    expect(await woken()).toMatchObject([{ payload: 'one' }])
    expect(await pod.db('waiting')).toEqual([])
  })

  it('take their locks in one order, independent of the order of the entities', async () => {
    const entityKeys = Array.from({ length: 50 }, (_, index): EntityKey => `post:${String(index).padStart(16, '0')}`)
    const backwards = entityKeys.toReversed()

    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        pod.db.transaction((transaction) => lockEntityKeys(transaction, index % 2 === 0 ? entityKeys : backwards)),
      ),
    )
  })

  it('become jobs for the last time when their waiting time expires', async () => {
    await park(message('early'), message('late'))
    await pod
      .db('waiting')
      .where({ payload: 'late' })
      .update({ dueAt: new Date(0) })

    await pod.db.transaction((transaction) => resumeOverdue(pod, transaction, 10))

    expect(await woken()).toMatchObject([{ payload: 'late', data: { last: true, times: 1 } }])
    expect(await pod.db('waiting').pluck('payload')).toEqual(['early'])
  })

  it('wait as long as each one specifies', async () => {
    await park(message('usual'), message('short', { maxWaitSeconds: 3_600 }))

    const { rows } = await pod.db.raw(`select payload, extract(epoch from due_at - created_at) as wait from waiting`)
    const waits = new Map<string, number>(rows.map(({ payload, wait }: Row) => [payload, Number(wait)]))
    expect(waits.get('short')).toBeCloseTo(3_600, 0)
    expect(waits.get('usual')).toBeCloseTo(6 * 3_600, 0)
  })

  describe('for an entity that can be fetched', () => {
    const thing = 'post:0000000000000001'
    const asks = () => pod.db('outbox').whereNull('payload').orderBy('id').select('queue', 'name', 'data')
    const ask = (from: string, orFrom?: string) => ({
      queue: 'fetch',
      name: 'fetch-entity',
      data: {
        type: 'post',
        guid: '0000000000000001',
        from,
        depth: 0,
        fetchesLeft: 14,
        ...(orFrom !== undefined && { orFrom }),
      },
    })

    it('cause one fetch, for any number of messages at any time', async () => {
      const fetchFrom = 'quin@q.example'
      const messages = Array.from({ length: 50 }, (_, index) => message(`${index}`, { waitsFor: thing, fetchFrom }))
      await park(...messages.slice(0, 20))
      await Promise.all([park(...messages.slice(20, 40)), park(...messages.slice(40))])

      expect(await asks()).toEqual([ask(fetchFrom)])
      expect(await pod.db('waiting').distinct('askedOf')).toEqual([{ askedOf: 'q.example' }])
      expect(await pod.db('waiting').distinct('askedBy')).toHaveLength(1)
    })

    it('cause the discovery of a missing person', async () => {
      await park(message('one', { fetchFrom: 'bob@far.example' }))

      expect(await asks()).toEqual([{ queue: 'fetch', name: 'discover-person', data: { address: 'bob@far.example' } }])
    })

    it('cause one fetch from each sender, independent of the claimed owner', async () => {
      const fallbackFetchFrom = 'root@r.example'
      await park(message('one', { waitsFor: thing, fetchFrom: 'quin@q.example', fallbackFetchFrom }))
      await park(message('two', { waitsFor: thing, fetchFrom: 'sam@s.example', fallbackFetchFrom }))
      await park(message('three', { waitsFor: thing, fetchFrom: 'liar@l.example' }))

      expect(await asks()).toEqual([ask('quin@q.example', fallbackFetchFrom), ask('liar@l.example')])
    })

    it('delay the fetch of an entity by a moment, but not the discovery of a person', async () => {
      await park(message('one', { waitsFor: thing, fetchFrom: 'quin@q.example' }))
      await vi.waitFor(async () => expect(await pod.jobs.counts('fetch')).toMatchObject({ delayed: 1, waiting: 0 }))

      await park(message('two', { fetchFrom: 'bob@far.example' }))
      await vi.waitFor(async () => expect(await pod.jobs.counts('fetch')).toMatchObject({ delayed: 1, waiting: 1 }))
    })

    it('cause no fetch of an entity that is stored by then', async () => {
      await storeBob()

      await park(message('one', { fetchFrom: 'bob@far.example' }))

      expect(await asks()).toEqual([])
      expect(await woken()).toMatchObject([{ payload: 'one' }])
    })

    it('run for the last time when their own fetch has failed, and not when the fetch of other messages has', async () => {
      await park(message('one', { waitsFor: thing, fetchFrom: 'quin@q.example' }))
      await park(message('two', { waitsFor: thing, fetchFrom: 'quin@q.example' }))
      await park(message('other', { waitsFor: thing, fetchFrom: 'sam@s.example' }))
      await park(message('nobody', { waitsFor: thing }))
      const { id } = await pod.db('outbox').whereJsonPath('data', '$.from', '=', 'quin@q.example').first('id')

      await giveUpOutboxRow(pod, id, { fault: 'internal' })

      const messages = pod.db('outbox').whereNotNull('payload').orderBy('id')
      expect(await messages.select('payload', 'data')).toEqual([
        { payload: 'one', data: { recipientGuid: null, times: 1, last: true } },
        { payload: 'two', data: { recipientGuid: null, times: 1, last: true } },
      ])
      expect(await pod.db('waiting').orderBy('id').pluck('payload')).toEqual(['other', 'nobody'])
      expect(await pod.db('outbox').whereNotNull('failedAt').pluck('id')).toEqual([id])
    })

    it('cause another fetch after the first message with one has been given up', async () => {
      await park(message('one', { waitsFor: thing, fetchFrom: 'quin@q.example' }))
      const { id } = await pod.db('outbox').first('id')
      await giveUpOutboxRow(pod, id, { fault: 'internal' })

      await park(message('two', { waitsFor: thing, fetchFrom: 'quin@q.example' }))

      expect(await asks()).toHaveLength(2)
    })
  })
})

interface Row {
  readonly payload: string
  readonly wait: string
}

async function untilSomebodyWaitsForALock({ db }: QueuePod): Promise<void> {
  await vi.waitFor(async () => {
    const { rows } = await db.raw(
      `select from pg_locks join pg_database on pg_database.oid = database
       where locktype = 'advisory' and not granted and datname = current_database()`,
    )
    expect(rows).toHaveLength(1)
  })
}

async function insertBob({ db }: QueuePod, address = 'bob@far.example'): Promise<number> {
  const [{ id }] = await db('people').insert({ guid: '0123456789abcdef', address, publicKey: 'key' }).returning('id')
  return id
}

async function insertPost(pod: QueuePod, guid: string): Promise<number> {
  const authorId = await insertBob(pod)
  const [{ id }] = await pod.db('posts').insert({ guid, authorId, type: 'StatusMessage', public: true }).returning('id')
  return id
}

async function insertComment(pod: QueuePod, guid: string): Promise<void> {
  const postId = await insertPost(pod, '0000000000000009')
  const [{ authorId }] = await pod.db('posts').select('authorId')
  await pod.db('comments').insert({ guid, authorId, postId, text: 'Hello' })
}
