import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { Contact } from '../../src/persistence/models/contact.js'
import type { Person } from '../../src/persistence/models/person.js'
import { notifyHandlers } from '../../workers/handlers/notify.js'
import { outboundHandlers, outboundSlowHandlers, relayHandlers } from '../../workers/handlers/outbound.js'
import { commentBy } from '../support/federation/entities.js'
import { envelopeOf, signedBy } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { addRecordingPod, type RecordingPod } from '../support/federation/recording-pod.js'
import { viewerOf } from '../support/people/local-users.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'

const COMMENTS = 3_000
const FLOOD_MS = 15_000
const ANSWER_MS = 20
/** For a post of a local user who has nothing to do with the flood, and for one of the flooded user. */
const LATEST_OF_OTHERS = 5_000
const LATEST_OF_FLOODED = 60_000

describe.each(queueBackends)('S84: a flood of comments under one post, with the queue in $store', (backend) => {
  let fakePods: FakePods
  let stores: TestStores
  let pod: AttackedPod
  let good: RecordingPod
  let third: RecordingPod
  let mallory: FakePerson
  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startAttackedPod({
      fakePods,
      stores,
      handlers: {
        outbound: outboundHandlers,
        'outbound-slow': outboundSlowHandlers,
        relay: relayHandlers,
        notify: notifyHandlers,
      },
      queues: ['inbound', 'inbound-private', 'fetch', 'maintenance', 'outbound', 'outbound-slow', 'relay', 'notify'],
      timing: { lockMs: 30_000, stalledCheckMs: 15_000 },
    })
    // The statistics of an idle time: the tables are nearly empty, and stay so.
    for (const table of ['deliveries', 'outbound_messages', 'comments', 'outbox']) {
      await pod.db.raw(`alter table ${table} set (autovacuum_enabled = false)`)
    }
    await pod.db.raw('analyze')
    const provenPod = { lastSuccessAt: new Date(), answeredAt: new Date() }
    good = await addRecordingPod(fakePods, pod, 'good.example:3000', provenPod)
    third = await addRecordingPod(fakePods, pod, 'third.example:3000', provenPod)
    mallory = fakePods.person('mallory@evil.example')
    await pod.addRemotePerson(mallory)
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })

  async function viewerFollowedFrom(name: 'alice' | 'bob', follower: Person) {
    const people = await pod.people(name)
    const viewer = await viewerOf(pod, people[name])
    await Contact.query(pod.db).insert({ userId: viewer.userId, personId: follower.id, sharing: true })
    return viewer
  }

  /** The guids that the other pod has received; it takes its time to answer. */
  function receive({ host }: RecordingPod): ReadonlySet<string> {
    const guids = new Set<string>()
    fakePods.script(`${host}/receive/public`, async (request, response) => {
      guids.add(guidIn(await text(request)))
      setTimeout(() => response.writeHead(202).end(), ANSWER_MS)
    })
    return guids
  }

  /** Publishes a post; resolves with the milliseconds until the other pod has it. */
  async function publishAndAwait(viewer: Viewer, arrived: ReadonlySet<string>, within: number): Promise<number> {
    const before = performance.now()
    const { guid } = await publishPost(pod, viewer, { text: 'Good morning', public: true })
    while (performance.now() - before < within) {
      if (arrived.has(guid)) return performance.now() - before
      await pause(20)
    }
    return Number.POSITIVE_INFINITY
  }

  it('delays neither other users nor, for long, the author of the post', { timeout: 480_000 }, async () => {
    const alice = await viewerFollowedFrom('alice', (await good.person()).row)
    const bob = await viewerFollowedFrom('bob', (await third.person()).row)
    const [atGood, atThird] = [receive(good), receive(third)]
    const { guid } = await publishPost(pod, alice, { text: 'A popular post', public: true })
    const author = 'alice@pod.example'
    const comments = Array.from({ length: COMMENTS }, () =>
      envelopeOf(mallory, signedBy(mallory, commentBy(mallory, { guid, author } as never))),
    )
    expect(await publishAndAwait(bob, atThird, LATEST_OF_OTHERS)).toBeLessThan(LATEST_OF_OTHERS)

    const began = performance.now()
    const under: Promise<number>[] = []
    const flood = (async () => {
      for (const [index, comment] of comments.entries()) {
        const due = began + (index / COMMENTS) * FLOOD_MS
        if (performance.now() < due) await pause(due - performance.now())
        under.push(pod.post('/receive/public', comment))
      }
      await Promise.all(under)
    })()
    const ofBob: number[] = []
    async function publishForBob(): Promise<void> {
      ofBob.push(await publishAndAwait(bob, atThird, 4 * LATEST_OF_OTHERS))
      await pause(500)
    }
    while (performance.now() - began < FLOOD_MS / 2) await publishForBob()
    let isOver = false
    const arriving = publishAndAwait(alice, atGood, 2 * LATEST_OF_FLOODED)
    arriving.finally(() => {
      isOver = true
    })
    while (!isOver || performance.now() - began < 2 * FLOOD_MS) await publishForBob()
    const ofAlice = await arriving
    await flood

    expect(Math.max(...ofBob)).toBeLessThan(LATEST_OF_OTHERS)
    expect(ofAlice).toBeLessThan(LATEST_OF_FLOODED)
    await pod.waitUntilIdle(300_000)
    expect(await pod.rows('comments', 'deliveries')).toEqual([COMMENTS, 0])
    expect(atGood.size).toBe(2 + COMMENTS)
  })
})

function guidIn(envelope: string): string {
  const [, data = ''] = /<me:data[^>]*>([^<]*)</.exec(envelope) ?? []
  const entity = Buffer.from(data.replaceAll(/\s/g, ''), 'base64url').toString()
  return /<guid>([^<]*)</.exec(entity)?.[1] ?? ''
}
