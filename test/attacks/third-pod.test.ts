import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { Contact } from '../../src/persistence/models/contact.js'
import { Person } from '../../src/persistence/models/person.js'
import { RemotePod } from '../../src/persistence/models/remote-pod.js'
import { UNDELIVERED_LIMITS } from '../../src/persistence/outbound/limits.js'
import { outboundHandlers, outboundSlowHandlers, relayHandlers } from '../../workers/handlers/outbound.js'
import { commentBy, participationBy, postBy } from '../support/federation/entities.js'
import { envelopeOf, signedBy } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { addRecordingPod, type RecordingPod } from '../support/federation/recording-pod.js'
import { viewerOf } from '../support/people/local-users.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'

const POSTS = 6_000
const CONCURRENT_REQUESTS = 16
const LATEST_MS = 5_000
/** Each over https, then over http. */
const DISCOVERY_TRIES = 11
const WEBFINGER = '/.well-known/webfinger'

describe.each(queueBackends)('S47: the pod of an uninvolved third party, with the queue in $store', (backend) => {
  let fakePods: FakePods
  let stores: TestStores
  let pod: AttackedPod
  let good: RecordingPod
  const atGood: string[] = []
  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startAttackedPod({
      fakePods,
      stores,
      environment: { PODMIN_ACCOUNT: 'alice' },
      handlers: { outbound: outboundHandlers, 'outbound-slow': outboundSlowHandlers, relay: relayHandlers },
      queues: ['inbound', 'inbound-private', 'fetch', 'maintenance', 'outbound', 'outbound-slow', 'relay'],
      timing: { lockMs: 30_000, stalledCheckMs: 15_000 },
    })
    good = await addRecordingPod(fakePods, pod, 'good.example:3000')
    fakePods.script(`${good.host}/receive/public`, async (request, response) => {
      atGood.push(await text(request))
      setTimeout(() => response.writeHead(202).end(), 50)
    })
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })

  async function flood(messages: readonly string[]): Promise<void> {
    const left = messages.values()
    await Promise.all(
      Array.from({ length: CONCURRENT_REQUESTS }, async () => {
        for (const message of left) await pod.post('/receive/public', message)
      }),
    )
  }

  /** Resolves with the milliseconds until a new post of alice has arrived there. */
  async function deliveredAfter(): Promise<number> {
    const { alice } = await pod.people('alice')
    const before = performance.now()
    const count = atGood.length
    await publishPost(pod, await viewerOf(pod, alice), { text: 'Good morning', public: true })
    while (atGood.length === count && performance.now() - before < 4 * LATEST_MS) await pause(20)
    return performance.now() - before
  }

  function countRequests(path: string): number {
    return fakePods.requests.filter((request) => request.startsWith(`${good.host}${path}`)).length
  }

  it('is sent nothing because of a person who only claims to belong to it', { timeout: 240_000 }, async () => {
    const { alice } = await pod.people('alice')
    const { userId } = await viewerOf(pod, alice)
    await Contact.query(pod.db).insert({ userId, personId: (await good.person()).row.id, sharing: true })
    const mallory = fakePods.person('mallory@evil.example')
    const document = fakePods.webFinger(mallory)
    const links = document.links.map((link) =>
      link.rel.endsWith('/seed_location') ? { ...link, href: `http://${good.host}/` } : link,
    )
    fakePods.script(`evil.example${WEBFINGER}`, (_request, response) =>
      response.end(JSON.stringify({ ...document, links })),
    )

    await flood(Array.from({ length: POSTS }, () => envelopeOf(mallory, postBy(mallory))))

    expect(await deliveredAfter()).toBeLessThan(LATEST_MS)
    expect(countRequests('/receive/users/')).toBe(0)
    expect(await pod.rows('posts')).toEqual([1])
    expect(countRequests(WEBFINGER)).toBeLessThanOrEqual(2 * DISCOVERY_TRIES)
  })

  it('gets real deliveries first, however much one of its people publishes', { timeout: 240_000 }, async () => {
    const mallory = await good.person()
    let most = 0
    const watch = setInterval(async () => {
      const rows = await pod.db('deliveries').where({ personId: mallory.row.id, state: 'waiting' }).count()
      most = Math.max(most, Number(rows[0]?.count))
    }, 200)
    // Participations that it does not want: each costs one exchange.
    good.respondWith(404, `/receive/users/${mallory.guid}`)

    await flood(Array.from({ length: POSTS }, () => envelopeOf(mallory, postBy(mallory))))
    const milliseconds = await deliveredAfter()
    clearInterval(watch)

    expect(milliseconds).toBeLessThan(LATEST_MS)
    expect(most).toBeLessThanOrEqual(1)
  })
})

describe('S82: subscribers on invented pods', () => {
  const PODS = 1_000
  const COMMENTS = 300

  it('cost a bounded number of rows, for any messages', { timeout: 240_000 }, async () => {
    await using fakePods = await startFakePods()
    await using pod = await startAttackedPod({
      fakePods,
      handlers: { relay: relayHandlers },
      queues: ['inbound', 'inbound-private', 'fetch', 'maintenance', 'relay'],
      timing: { lockMs: 30_000, stalledCheckMs: 15_000 },
    })
    const { alice } = await pod.people('alice')
    const author = 'alice@pod.example'
    const { guid } = await publishPost(pod, await viewerOf(pod, alice), { text: 'Good morning', public: true })
    const mallory = fakePods.person('mallory@evil.example')
    await pod.addRemotePerson(mallory)
    const invented: FakePerson[] = []
    for (let index = 0; index < PODS; index += 1) {
      const person = { ...mallory, address: `one@invented${index}.example`, guid: newGuid() }
      await pod.db.transaction((transaction) => meetOn(transaction, person))
      invented.push(person)
    }
    const post = { guid, author }
    for (const person of invented) await pod.postPublic(participationBy(person, post), person)
    await pod.waitUntilIdle(60_000)
    for (let index = 0; index < COMMENTS; index += 1) {
      await pod.postPublic(signedBy(mallory, commentBy(mallory, post as never)), mallory)
    }
    await pod.waitUntilIdle(60_000)

    const [participations = 0, comments, deliveries = 0] = await pod.rows('participations', 'comments', 'deliveries')
    expect(comments).toBe(COMMENTS)
    expect(participations).toBeLessThanOrEqual(UNDELIVERED_LIMITS.participantsOfNeverAnsweredPods + 1)
    // Two jobs at the same moment may each count the same free place.
    const rows = UNDELIVERED_LIMITS.participantsOfNeverAnsweredPods * UNDELIVERED_LIMITS.relaysOfNeverAnsweredPod
    expect(deliveries).toBeLessThanOrEqual(2 * rows)
    expect(deliveries).toBeGreaterThan(0)
  })

  /** A person with the keys of mallory, on a pod of their own. */
  async function meetOn(transaction: Knex.Transaction, { address, guid, publicKey }: FakePerson): Promise<void> {
    const { id: podId } = await RemotePod.findOrInsert(transaction, {
      host: address.split('@')[1] ?? '',
      port: 443,
      ssl: true,
    })
    await Person.insertWithProfile(transaction, { guid, address, publicKey, podId })
  }
})
