import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { limitOfSite } from '../../src/concurrency/rate-counters.js'
import { deleteMessagesBeyondLimits, type WaitingLimits } from '../../src/jobs/waiting/delete-beyond-limits.js'
import { SIGNER_LIMITS, WAITING_LIMITS } from '../../src/jobs/waiting/limits.js'
import { lockEntityKeys } from '../../src/jobs/waiting/lock-entity-keys.js'
import { resumeOverdue } from '../../src/jobs/waiting/resume-messages.js'
import {
  findDueLookups,
  recordFailedLookups,
  takeUnverifiedSignerBudget,
} from '../../src/jobs/waiting/signer-lookups.js'
import { deferMessages, type NewWaitingMessage } from '../../src/jobs/waiting/store-waiting-messages.js'
import { giveUpSigners } from '../../src/jobs/waiting/unverified-messages.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'

const ATTACKER = '198.51.100.1'
/** Network addresses in use: budgets are kept per process. */
let sources = 0

describe.each(queueBackends)('messages of unknown signers, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterAll(() => stores.close())
  beforeEach(async () => {
    await stores.emptyQueue()
    await pod.db.raw('truncate outbox, waiting, signer_lookups, people, pods cascade')
  })

  function unverified(name: string, difference: Partial<NewWaitingMessage> = {}): NewWaitingMessage {
    const senderHost = difference.senderHost ?? 'far.example'
    return {
      waitsFor: `person:${name}@${senderHost}`,
      payload: `a message of ${name}@${senderHost}`,
      acceptedAt: new Date(),
      times: 0,
      isVerified: false,
      senderHost,
      ...difference,
    }
  }

  async function park(...messages: NewWaitingMessage[]): Promise<void> {
    await pod.db.transaction(async (transaction) => {
      const entityKeys = messages.map(({ waitsFor }) => waitsFor)
      await lockEntityKeys(transaction, entityKeys)
      await deferMessages(pod, transaction, messages, [])
    })
  }

  const newSource = () => {
    sources += 1
    return `2001:db8:${sources}:0` // networks of one /48 would share a limit
  }
  const meetPod = (host: string) => pod.db('pods').insert({ host, port: 443, ssl: true })
  const waitingSigners = async () =>
    (await pod.db('waiting').orderBy('id').select('waitsFor')).map(({ waitsFor }) => waitsFor.slice('person:'.length))
  const many = (count: number, difference: Partial<NewWaitingMessage> = {}, name = 'u') =>
    Array.from({ length: count }, (_, index) => unverified(`${name}${index}`, difference))

  it('have their signers discovered by one job per host, for any number of messages', async () => {
    await park(...many(50), unverified('quin', { senderHost: 'near.example' }))
    await park(...many(60))

    expect(await pod.db('signerLookups').count({ rows: '*' })).toEqual([{ rows: 61 }])
    const hostJobs = () => pod.jobs.counts('fetch-unproven')
    await vi.waitFor(async () => expect(await hostJobs()).toMatchObject({ waiting: 2 }))
    expect(await pod.jobs.counts('fetch')).toMatchObject({ waiting: 0 })
    expect(await pod.db('outbox')).toEqual([])
  })

  it('wait a short time for a host that has never responded, and the usual time for a host that has', async () => {
    await meetPod('known.example')
    await park(unverified('new'), unverified('old', { senderHost: 'known.example' }))

    const { rows } = await pod.db.raw(
      `select sender_host as host, extract(epoch from due_at - created_at)::float as seconds from waiting order by id`,
    )
    const seconds = new Map(rows.map((row: { host: string; seconds: number }) => [row.host, row.seconds]))
    expect(seconds.get('far.example')).toBeCloseTo(WAITING_LIMITS.unverifiedWaitSeconds, 0)
    expect(seconds.get('known.example')).toBeCloseTo(6 * 3_600, 0)
  })

  it('are dropped beyond the budget of names of one network address, but not on hosts that have responded', async () => {
    const source = newSource()
    await meetPod('known.example')
    const budget = SIGNER_LIMITS.unverifiedOfSourcePerMinute
    const later = performance.now() + 60_000 // so that the budget is not refilled in the meantime
    for (let spent = 0; spent < budget; spent += 1) expect(takeUnverifiedSignerBudget(pod, source, later)).toBe(true)

    await park(
      unverified('over', { source }),
      unverified('honest', { source, senderHost: 'known.example' }),
      unverified('other', { source: newSource() }),
    )

    expect(await waitingSigners()).not.toContain('over@far.example')
    expect(await waitingSigners()).toEqual(expect.arrayContaining(['honest@known.example', 'other@far.example']))
  })

  it('are dropped beyond the budget of names of all networks of one IPv6 /48', () => {
    const site = newSource().replace(/0$/, '')
    const now = 1_000_000
    const budget = limitOfSite(SIGNER_LIMITS.unverifiedOfSourcePerMinute, SIGNER_LIMITS.sources)

    const admitted = Array.from({ length: 2 * budget }, (_, network) =>
      takeUnverifiedSignerBudget(pod, `${site}${network}`, now),
    )

    expect(admitted.filter(Boolean)).toHaveLength(budget)
    expect(takeUnverifiedSignerBudget(pod, newSource(), now)).toBe(true)
  })

  it('of one host from all networks of one IPv6 /48 count as from one address', async () => {
    const most = WAITING_LIMITS.maxUnverifiedMessagesOfHost
    await meetPod('far.example')
    await park(unverified('honest', { source: '2001:db8:1:1' }))
    await park(unverified('oldest', { source: '2001:db8:2:1' }))
    await park(...many(most).map((message, network) => ({ ...message, source: `2001:db8:2:${network.toString(16)}` })))

    const left = await waitingSigners()
    expect(left).toHaveLength(most)
    expect(left).toContain('honest@far.example')
    expect(left).not.toContain('oldest@far.example')
    const due = await findDueLookups(pod.db, 'far.example', 2)
    expect(due).toContain('honest@far.example')
  })

  it('may name ten new signers a second from an address with a spent budget', () => {
    const source = newSource()
    const now = 1_000_000
    for (let spent = 0; spent < SIGNER_LIMITS.unverifiedOfSourcePerMinute; spent += 1)
      takeUnverifiedSignerBudget(pod, source, now)

    expect(takeUnverifiedSignerBudget(pod, source, now)).toBe(false)
    const later = Array.from({ length: 20 }, () => takeUnverifiedSignerBudget(pod, source, now + 1_000))
    expect(later.filter(Boolean)).toHaveLength(10)
  })

  it('of one host are dropped beyond its limit: the oldest of the address that has sent the most', async () => {
    const most = WAITING_LIMITS.maxUnverifiedMessagesOfHost
    await meetPod('far.example')
    await park(unverified('honest', { source: '203.0.113.5' }))
    await park(unverified('oldest', { source: ATTACKER }))
    await park(...many(most - 1, { source: ATTACKER }))
    await park(unverified('newest', { source: ATTACKER }))

    const left = await waitingSigners()
    expect(left).toHaveLength(most)
    expect(left).toEqual(expect.arrayContaining(['honest@far.example', 'newest@far.example']))
    expect(left).not.toContain('oldest@far.example')
  })

  it.each([
    ['longer than a legal message', { payload: 'x'.repeat(WAITING_LIMITS.maxUnverifiedMessageBytes + 1) }, 0],
    ['as long as a legal one', { payload: 'x'.repeat(WAITING_LIMITS.maxUnverifiedMessageBytes) }, 1],
  ])('that are %s: %#', async (_, difference, kept) => {
    await park(unverified('quin', difference))

    expect(await pod.db('waiting')).toHaveLength(kept)
    expect(await pod.db('signerLookups')).toHaveLength(kept)
  })

  it('have their signers discovered for each source in turn', async () => {
    await park(...many(20, { source: ATTACKER }))
    await park(unverified('late', { source: '203.0.113.5' }))

    expect(await findDueLookups(pod.db, 'far.example', 2)).toContain('late@far.example')
  })

  it('whose signers are not found become dead letters without payload, and verified ones keep waiting', async () => {
    const thing = 'person:lost@far.example'
    await park(unverified('lost'), {
      ...unverified('lost'),
      payload: 'verified',
      isVerified: true,
      fetchFrom: 'lost@far.example',
    })
    let lost: readonly string[] = []
    for (let tries = 0; tries < SIGNER_LIMITS.attemptsAtUnknownHost; tries += 1) {
      expect(lost).toEqual([])
      lost = await recordFailedLookups(pod.db, ['lost@far.example'], SIGNER_LIMITS.attemptsAtUnknownHost)
    }
    expect(lost).toEqual(['lost@far.example'])
    await pod.db.transaction((transaction) => giveUpSigners(pod, transaction, lost))

    expect(await pod.db('waiting').select('waitsFor', 'payload')).toEqual([{ waitsFor: thing, payload: 'verified' }])
    const dead = pod.db('outbox').whereNotNull('failedAt').select('queue', 'payload', 'data')
    expect(await dead).toMatchObject([
      { queue: 'inbound', payload: null, data: { fault: 'DiscoveryFailed', signer: 'lost@far.example' } },
    ])
  })

  it('become dead letters without payload when their waiting time expires', async () => {
    await park(unverified('early'), unverified('late'))
    await pod
      .db('waiting')
      .where({ waitsFor: 'person:late@far.example' })
      .update({ dueAt: new Date(0) })

    await pod.db.transaction((transaction) => resumeOverdue(pod, transaction, 10))

    expect(await waitingSigners()).toEqual(['early@far.example'])
    expect(await pod.db('outbox').whereNotNull('failedAt').pluck('payload')).toEqual([null])
  })

  describe('and of known signers, beyond the total limits', () => {
    const limits: WaitingLimits = {
      ...WAITING_LIMITS,
      maxVerifiedMessages: 6,
      maxVerifiedBytes: 1_000,
      maxMessagesOfHost: 4,
      maxBytesOfHost: 500,
      maxUnverifiedMessages: 3,
      maxUnverifiedBytes: 300,
      longMessageBytes: 50,
      maxLongUnverifiedBytes: 100,
      maxDeadMessages: 4,
      maxDeadBytes: 300,
      rowsPerBatch: 2,
    }
    const bound = () => deleteMessagesBeyondLimits(pod, limits, 0)
    const payloads = () => pod.db('waiting').orderBy('id').pluck('payload')

    async function insert(signed: boolean, ...sizes: readonly [host: string, bytes: number][]): Promise<void> {
      const row = ([host, bytes]: (typeof sizes)[number], index: number) => ({
        waitsFor: 'post:0123456789abcdef',
        name: 'receive-public',
        payload: `${index}`.padEnd(bytes, '.'),
        acceptedAt: new Date(),
        digest: Buffer.alloc(32, `${signed} ${index} ${host}`),
        senderHost: host,
        signed,
        bytes,
      })
      await pod.db('waiting').insert(sizes.map(row))
    }

    const indexes = async () => (await payloads()).map((payload) => Number.parseInt(payload, 10))

    it('the oldest unverified messages are dropped first', async () => {
      await insert(true, ['a.example', 10])
      await insert(false, ...Array.from({ length: 5 }, (): [string, number] => ['b.example', 20]))
      await bound()

      expect(await indexes()).toEqual([0, 2, 3, 4])
    })

    it('the oldest long messages are dropped, and the short ones stay', async () => {
      await insert(false, ['a.example', 60], ['b.example', 10], ['c.example', 60])
      await bound()

      expect(await indexes()).toEqual([1, 2])
    })

    it('the oldest messages of a host with too many messages or bytes are dropped', async () => {
      await insert(true, ...Array.from({ length: 5 }, (): [string, number] => ['a.example', 10]), ['b.example', 10])
      await bound()
      expect(await indexes()).toEqual([1, 2, 3, 4, 5])

      await pod.db('waiting').delete()
      await insert(true, ['a.example', 300], ['a.example', 300], ['b.example', 300])
      await bound()
      expect(await indexes()).toEqual([1, 2])
    })

    it('the oldest messages of all hosts are dropped, by number and by bytes', async () => {
      const hosts = Array.from({ length: 8 }, (_, index): [string, number] => [`h${index}.example`, 10])
      await insert(true, ...hosts)
      await bound()
      expect(await indexes()).toEqual([2, 3, 4, 5, 6, 7])

      await pod.db('waiting').delete()
      await insert(true, ...hosts.slice(0, 4).map(([host]): [string, number] => [host, 400]))
      await bound()
      expect(await indexes()).toEqual([2, 3])
    })

    it('the oldest dead letters are deleted, and other work stays', async () => {
      const row = (minutes: number, payload: string | null, name = 'receive-public') => ({
        queue: 'inbound',
        name,
        payload,
        failedAt: new Date(Date.now() - minutes * 60_000),
      })
      await pod
        .db('outbox')
        .insert([row(9, null, 'other'), row(5, 'x'), row(4, 'x'), row(3, 'x'), row(2, 'x'), row(1, 'x')])
      await bound()
      expect(await pod.db('outbox').where({ name: 'receive-public' })).toHaveLength(4)
      expect(await pod.db('outbox').where({ name: 'other' })).toHaveLength(1)

      await pod.db('outbox').delete()
      await pod.db('outbox').insert([row(3, '3'.repeat(200)), row(2, '2'.repeat(200)), row(1, '1'.repeat(50))])
      await bound()
      expect(await pod.db('outbox').orderBy('failedAt').pluck('payload')).toEqual(['2'.repeat(200), '1'.repeat(50)])
    })
  })
})
