import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { listDeadLetters } from '../../src/jobs/dead-letters.js'
import type { Work } from '../../src/jobs/outbox.js'
import {
  lockThings,
  NotYet,
  type ParkedMessage,
  type Thing,
  waitAndWake,
  waitFor,
  wakeOverdue,
} from '../../src/jobs/waiting.js'
import type { Handler } from '../../workers/run-job.js'
import type { RunningWorkers } from '../../workers/start-workers.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queue-backends.js'
import type { QueuePod } from '../support/queue-pod.js'
import { startQuickWorkers, untilIdle } from '../support/test-workers.js'

const bob = 'person:bob@far.example'

function message(payload: string, difference: Partial<ParkedMessage> = {}): ParkedMessage {
  const acceptedAt = new Date('2026-01-02T03:04:05.678Z')
  return {
    waitsFor: bob,
    name: 'receive-public',
    recipientGuid: undefined,
    payload,
    acceptedAt,
    times: 0,
    ...difference,
  }
}

describe.each(queueBackends)('messages that wait, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod
  let workers: RunningWorkers | undefined

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterAll(() => stores.close())
  beforeEach(async () => {
    await stores.emptyQueue()
    for (const table of ['outbox', 'waiting', 'posts', 'people']) await pod.db(table).delete()
    return () => workers?.close()
  })

  /** What a batch does with messages that it cannot take in yet. */
  async function park(...messages: ParkedMessage[]): Promise<void> {
    await pod.db.transaction(async (transaction) => {
      await lockThings(
        transaction,
        messages.map(({ waitsFor }) => waitsFor),
      )
      await waitAndWake(pod, transaction, messages, [])
    })
  }

  /** What the transaction does that stores what they wait for. */
  async function storeBob(meanwhile = async () => {}): Promise<void> {
    await pod.db.transaction(async (transaction) => {
      await lockThings(transaction, [bob])
      await transaction('people').insert({ guid: '0123456789abcdef', address: 'bob@far.example', publicKey: 'key' })
      await meanwhile()
      await waitAndWake(pod, transaction, [], [bob])
    })
  }

  const woken = () => pod.db('outbox').orderBy('id').select('queue', 'name', 'data', 'payload', 'acceptedAt')

  it('become outbox rows when what they wait for is stored, and are handed over', async () => {
    await park(message('one'), message('two', { recipientGuid: 'fedcba9876543210', name: 'receive-private' }))
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

  it('wait once, however often the same one arrives', async () => {
    await park(message('one'), message('one'))
    await park(message('one'), message('one', { recipientGuid: 'fedcba9876543210' }))

    expect(await pod.db('waiting').count({ rows: '*' })).toEqual([{ rows: 2 }])
  })

  it('are woken at once when what they wait for came in between', async () => {
    await storeBob()

    await park(message('one'))

    expect(await woken()).toMatchObject([{ payload: 'one' }])
    expect(await pod.db('waiting')).toEqual([])
  })

  it.each<[Thing, string, (pod: QueuePod) => Promise<unknown>]>([
    ['person:bob@far.example:3000', 'people', (pod) => insertBob(pod, 'bob@far.example:3000')],
    ['post:0000000000000001', 'posts', (pod) => insertPost(pod, '0000000000000001')],
    ['comment:0000000000000002', 'comments', (pod) => insertComment(pod, '0000000000000002')],
  ])('find %s among the %s', async (thing, _, insert) => {
    await insert(pod)

    await park(message('one', { waitsFor: thing }))

    expect(await woken()).toMatchObject([{ payload: 'one' }])
  })

  it('do not miss what is being stored while they are parked', async () => {
    let parking: Promise<void> | undefined
    await storeBob(async () => {
      parking = park(message('one'))
      await untilSomebodyWaitsForALock(pod)
    })
    await parking

    expect(await woken()).toMatchObject([{ payload: 'one' }])
    expect(await pod.db('waiting')).toEqual([])
  })

  it('do not miss it either when their own job parks them', async () => {
    const work = { data: {}, payload: 'one', acceptedAt: undefined, finish: async () => {} }
    let parking: Promise<void> | undefined
    await storeBob(async () => {
      parking = waitFor(pod, bob, 'receive-public', work)
      await untilSomebodyWaitsForALock(pod)
    })
    await parking

    expect(await woken()).toMatchObject([{ payload: 'one' }])
    expect(await pod.db('waiting')).toEqual([])
  })

  it('are not missed by what is stored while they are being parked', async () => {
    let storing: Promise<void> | undefined
    await pod.db.transaction(async (transaction) => {
      await lockThings(transaction, [bob])
      await waitAndWake(pod, transaction, [message('one')], [])
      storing = storeBob()
      await untilSomebodyWaitsForALock(pod)
    })
    await storing

    expect(await woken()).toMatchObject([{ payload: 'one' }])
    expect(await pod.db('waiting')).toEqual([])
  })

  it('take their locks in one order, whatever the order of the things', async () => {
    const things = Array.from({ length: 50 }, (_, index): Thing => `post:${String(index).padStart(16, '0')}`)
    const backwards = things.toReversed()

    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        pod.db.transaction((transaction) => lockThings(transaction, index % 2 === 0 ? things : backwards)),
      ),
    )
  })

  it('become jobs for the last time when their time is over', async () => {
    await park(message('early'), message('late'))
    await pod
      .db('waiting')
      .where({ payload: 'late' })
      .update({ dueAt: new Date(0) })

    await pod.db.transaction((transaction) => wakeOverdue(pod, transaction, 10))

    expect(await woken()).toMatchObject([{ payload: 'late', data: { last: true, times: 1 } }])
    expect(await pod.db('waiting').pluck('payload')).toEqual(['early'])
  })

  describe('as jobs of their own', () => {
    const tries: string[] = []
    const seenBy =
      (ending: () => Promise<void>): Handler =>
      async (_, { payload }: Work<object>) => {
        tries.push(payload ?? 'no message')
        await ending()
      }

    function serve(handler: Handler): void {
      tries.length = 0
      workers = startQuickWorkers(pod, { queues: ['inbound'], handlers: { inbound: { 'receive-public': handler } } })
    }

    async function arrive(payload: string | null, data: object = {}): Promise<void> {
      const row = { queue: 'inbound', name: 'receive-public', data: JSON.stringify(data), payload }
      const [{ id }] = await pod
        .db('outbox')
        .insert({ ...row, acceptedAt: pod.db.fn.now() })
        .returning('id')
      await pod.jobs.handOver([{ id, queue: 'inbound', name: 'receive-public', options: { attempts: 2 } }])
    }

    it('are parked when their handler asks for it, and run again when they are woken', async () => {
      let here = false
      serve(seenBy(() => (here ? Promise.resolve() : Promise.reject(new NotYet(bob)))))
      await arrive('one')
      await untilIdle(pod)
      expect(await pod.db('waiting').select('payload', 'waitsFor', 'times')).toEqual([
        { payload: 'one', waitsFor: bob, times: 1 },
      ])

      here = true
      await storeBob()
      await untilIdle(pod)

      expect(tries).toEqual(['one', 'one'])
      expect(await pod.db('waiting')).toEqual([])
      expect(await pod.db('outbox')).toEqual([])
    })

    it.each([
      ['waited three times', { times: 3 }],
      ['run for the last time', { times: 1, last: true }],
    ])('die of their fault when they have %s', async (_, data) => {
      serve(seenBy(() => Promise.reject(new NotYet(bob, 'NotFetchable'))))
      await arrive('one', data)

      await vi.waitFor(async () => expect(await listDeadLetters(pod)).toMatchObject([{ fault: 'NotFetchable' }]), {
        timeout: 10_000,
      })
      expect(tries).toEqual(['one'])
      expect(await pod.db('waiting')).toEqual([])
    })

    it('are tried again like any job when there is no message to park', async () => {
      serve(seenBy(() => Promise.reject(new NotYet(bob))))
      await arrive(null)

      await vi.waitFor(async () => expect(await listDeadLetters(pod)).toMatchObject([{ fault: 'TargetNotFound' }]), {
        timeout: 10_000,
      })
      expect(tries).toHaveLength(2)
    })
  })
})

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
