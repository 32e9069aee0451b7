import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import { showDeadLetter } from '../../src/jobs/dead-letters/show-dead-letter.js'
import { RECEIVE_LIMITS } from '../../src/jobs/inbound/limits.js'
import { deleteMessagesBeyondLimits } from '../../src/jobs/waiting/delete-beyond-limits.js'
import { SIGNER_LIMITS, WAITING_LIMITS } from '../../src/jobs/waiting/limits.js'
import { postBy } from '../support/federation/entities.js'
import { envelopeOf } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { type InboundPod, startInboundPod } from '../support/pods/inbound-pod.js'
import { dropDeadLetters } from '../support/queues/change-dead-letters.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { forgedEnvelope } from './forged-envelope.js'

/** A new person is stored within seconds; this is the bound for a busy machine. */
const SOON = { timeout: 20_000, interval: 50 }
const MEBIBYTE = 1024 * 1024
/** Messages of the batches under way. */
const BATCHES = 3 * 256

describe.each(queueBackends)('S90: signers without a verified identity, with the queue in $store', (backend) => {
  let stores: TestStores
  let fakePods: FakePods
  let pod: InboundPod
  let mallory: FakePerson
  let newcomers = 0

  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startInboundPod({ fakePods, stores, environment: { INBOUND_BYTES: String(2 ** 30) } })
    mallory = fakePods.person('mallory@evil.example')
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })

  /** A host that takes connections and never answers. */
  function openTarpit(host: string): void {
    fakePods.script(`${host}/.well-known/webfinger`, () => {})
  }

  /** Unsigned: the same bytes except for the named signer. */
  function unsigned(signer: string, payload = '<x/>'): string {
    return forgedEnvelope(mallory, payload, { keyId: signer, signature: 'AAAA' })
  }

  async function flood(count: number, envelope: (index: number) => string, batchSize = 200): Promise<void> {
    for (let sent = 0; sent < count; sent += batchSize) {
      const some = Array.from({ length: Math.min(batchSize, count - sent) }, (_, index) => envelope(sent + index))
      const statuses = await Promise.all(some.map((each) => pod.post('/receive/public', each)))
      expect(new Set(statuses).size, `answers ${[...new Set(statuses)]}`).toBeLessThanOrEqual(2)
    }
  }

  /** A person on a pod that is unknown here, and their post. */
  async function greetFromNewPod(): Promise<void> {
    newcomers += 1
    const gina = fakePods.person(`gina@new${newcomers}.example`)
    const post = postBy(gina, { text: 'Good morning' })
    expect(await pod.postPublic(post, gina)).toBe(202)
    await vi.waitFor(async () => expect(await pod.db('posts').where({ guid: post.guid })).toHaveLength(1), SOON)
  }

  async function waitingSizes(): Promise<{ rows: number; bytes: number; largest: number }> {
    const { rows } = await pod.db.raw(
      `select count(*)::int as rows, coalesce(sum(octet_length(payload)), 0)::int as bytes,
         coalesce(max(octet_length(payload)), 0)::int as largest from waiting`,
    )
    return rows[0]
  }

  const isTakenIn = async () => {
    const counts = await pod.jobs.counts('inbound')
    expect(counts.waiting + counts.active + counts.delayed).toBe(0)
  }

  it('20 000 of them on two hosts that never answer delay neither a new host nor a search', async () => {
    for (const host of ['tar1.example', 'tar2.example']) openTarpit(host)
    await flood(20_000, (index) => unsigned(`u${index}@tar${(index % 2) + 1}.example`))
    await greetFromNewPod()

    const { ann } = await pod.people('ann')
    const hugo = fakePods.person('hugo@elsewhere.example')
    const found = await pod.app.inject({
      url: `/api/v1/search/users?name_or_handle=${encodeURIComponent(hugo.address)}`,
      headers: { authorization: `Bearer ${ann.token}` },
    })
    expect(found.json()).toMatchObject([{ diaspora_id: hugo.address }])

    await vi.waitFor(isTakenIn, { timeout: 180_000, interval: 100 })
    await greetFromNewPod()
    const { rows } = await waitingSizes()
    // Batches stored concurrently do not see each other's parked messages.
    expect(rows).toBeLessThanOrEqual(2 * WAITING_LIMITS.maxUnverifiedMessagesOfHost + BATCHES)
    const asked = fakePods.requests.filter((request) => request.startsWith('tar'))
    expect(asked.length).toBeLessThanOrEqual(2 * SIGNER_LIMITS.attemptsAtUnknownHost)
  }, 420_000)

  it('2 000 invented hosts of one domain are looked up after a new host', async () => {
    for (let host = 0; host < 2_000; host += 1) openTarpit(`h${host}.wild.example`)
    await flood(2_000, (index) => unsigned(`eve@h${index}.wild.example`))

    await greetFromNewPod()
  }, 420_000)

  it('many people of one new pod all become known', async () => {
    const people = Array.from({ length: 60 }, (_, index) => fakePods.person(`p${index}@crowd.example`))
    const posts = people.map((person) => ({ person, post: postBy(person) }))
    await Promise.all(posts.map(({ person, post }) => pod.postPublic(post, person)))

    const guids = posts.map(({ post }) => post.guid)
    await vi.waitFor(async () => expect(await pod.db('posts').whereIn('guid', guids)).toHaveLength(60), {
      ...SOON,
      timeout: 60_000,
    })
  }, 420_000)

  it('of 150 messages of four mebibytes almost no bytes are kept, and the longest legal post of a new host is stored', async () => {
    await pod.db('waiting').delete()
    const payload = 'x'.repeat(3 * MEBIBYTE) // four mebibytes in base64
    openTarpit('big.example')
    await flood(150, (index) => unsigned(`u${index}@big.example`, payload), 10)
    await vi.waitFor(isTakenIn, { timeout: 180_000, interval: 100 })
    expect(await waitingSizes()).toMatchObject({ bytes: 0 })

    const long = 'y'.repeat(MEBIBYTE)
    for (let host = 0; host < 40; host += 1) openTarpit(`long${host}.example`)
    await flood(40, (index) => unsigned(`u@long${index}.example`, long), 10)
    await vi.waitFor(isTakenIn, { timeout: 180_000, interval: 100 })
    await deleteMessagesBeyondLimits(pod)
    const { bytes } = await waitingSizes()
    expect(bytes).toBeLessThanOrEqual(WAITING_LIMITS.maxLongUnverifiedBytes)

    const wordy = fakePods.person('wordy@prose.example')
    const post = postBy(wordy, { text: '\u{1f600}'.repeat(65_535) })
    expect(envelopeOf(wordy, post).length).toBeGreaterThan(WAITING_LIMITS.longMessageBytes)
    expect(envelopeOf(wordy, post).length).toBeLessThan(RECEIVE_LIMITS.bodyBytes)
    expect(await pod.postPublic(post, wordy)).toBe(202)
    await vi.waitFor(async () => expect(await pod.db('posts').where({ guid: post.guid })).toHaveLength(1), SOON)
  }, 420_000)

  it('1 280 dead letters of four mebibytes are listed, shown, bounded and dropped', async () => {
    const payload = 'z'.repeat(4 * MEBIBYTE)
    for (let row = 0; row < 1_280; row += 64) {
      await pod.db.raw(
        `insert into outbox (queue, name, data, payload, failed_at)
         select 'inbound', 'receive-public', '{"recipientGuid": null, "times": 3, "last": true}', ?, now()
         from generate_series(1, 64)`,
        [payload],
      )
    }
    const [first, ...rest] = await listDeadLetters(pod, { queue: 'inbound' })
    expect(rest).toHaveLength(99)
    expect(await showDeadLetter(pod, first?.id ?? '')).toMatchObject({ payload })

    await deleteMessagesBeyondLimits(pod)
    const kept = WAITING_LIMITS.maxDeadBytes / payload.length
    expect(await pod.db('outbox').whereNotNull('failedAt').whereNotNull('payload').pluck('id')).toHaveLength(kept)
    expect(await dropDeadLetters(pod, { queue: 'inbound' })).toBeGreaterThanOrEqual(kept)
    expect(await pod.db('outbox').whereNotNull('failedAt').where({ queue: 'inbound' })).toEqual([])
  }, 240_000)
})
