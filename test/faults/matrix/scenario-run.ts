import { setTimeout as pause } from 'node:timers/promises'
import { inject } from 'vitest'
import { listDeadLetters } from '../../../src/jobs/dead-letters/find-dead-letters.js'
import { type Burst, type LocalPost, makeBurst } from '../../soak/burst-messages.js'
import { findViolations } from '../../soak/burst-outcome.js'
import { until } from '../../soak/until.js'
import { addPost } from '../../support/databases/rows.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import type { PodUnderFaults } from './pod-under-faults.js'
import { type PublishedPost, postInbound, publish, publishWithRetries, type TimedResponse } from './senders.js'

interface Load {
  readonly messages: number
  readonly perSecond: number
  /** Posts of a client per second while messages arrive. */
  readonly writesPerSecond?: number
  /** Whether clients retry at the other process after 503 or without a response. */
  readonly clientsRetry?: boolean
  /** Maximum time until no work is left, in milliseconds. */
  readonly settledWithin?: number
  /**
   * For faults that may lose messages which no worker has started. This function runs when no work is left, before all messages are
   * sent again.
   */
  readonly beforeResend?: () => Promise<unknown>
}

/** Progress of a load. */
interface Progress {
  readonly responses: readonly TimedResponse[]
  readonly writes: readonly PublishedPost[]
  /** Resolves when this part of all messages has been accepted. */
  untilAccepted(share: number): Promise<void>
}

interface Outcome {
  /** All violations, as sentences. */
  readonly violations: readonly string[]
  readonly responses: readonly TimedResponse[]
  readonly writes: readonly PublishedPost[]
}

/** A pod with consecutive loads and faults. The violations of each run cover all messages since the start. */
export interface Scenario {
  /** Sends the load during the fault; returns the violations found when no work is left. */
  run(load: Load, fault: (progress: Progress) => Promise<unknown>): Promise<Outcome>
  /** Adds posts that were sent in addition to the loads, and must be stored as well. */
  addExpectedPosts(posts: Burst['posts']): void
}

const PEOPLE = 8
const CONCURRENT_SENDERS = 8
const RETRY_INTERVAL_MS = 250

export function openScenario(podUnderFaults: PodUnderFaults): Scenario {
  const { pod } = podUnderFaults
  const localPosts: LocalPost[] = []
  const bursts: Burst[] = []
  const writes: PublishedPost[] = []

  async function run(load: Load, fault: (progress: Progress) => Promise<unknown>): Promise<Outcome> {
    const seed = inject('seed') + bursts.length
    const posts = await addLocalPosts(podUnderFaults)
    const people: FakePerson[] = []
    for (let index = 0; index < PEOPLE; index += 1) people.push(await podUnderFaults.otherPods.addKnownPerson())
    // A pod that has never responded gets few relays (`relaysOfNeverAnsweredPod`), and no delivery may succeed while workers are killed.
    await pod.db('pods').whereNull('answeredAt').update({ answeredAt: new Date() })
    const burst = makeBurst(people, posts, { messages: load.messages, seed })
    localPosts.push(...posts)
    bursts.push(burst)
    serveRoots(podUnderFaults, people, burst)

    const responses: TimedResponse[] = []
    const newWrites: PublishedPost[] = []
    let accepted = 0
    const over = new AbortController()
    let queue = [...burst.envelopes]
    async function send(): Promise<void> {
      for (let envelope = queue.pop(); envelope !== undefined; envelope = queue.pop()) {
        const next = pause((CONCURRENT_SENDERS * 1_000) / load.perSecond)
        for (;;) {
          const response = await postInbound(podUnderFaults, '/receive/public', envelope)
          responses.push(response)
          if (response.status === 202) break
          await pause(RETRY_INTERVAL_MS)
        }
        accepted += 1
        await next
      }
    }
    async function write(): Promise<void> {
      const intervalMs = 1_000 / (load.writesPerSecond ?? 0)
      while (load.writesPerSecond !== undefined && !over.signal.aborted) {
        newWrites.push(
          await (load.clientsRetry === true ? publishWithRetries : publish)(podUnderFaults, podUnderFaults.alice),
        )
        await pause(intervalMs, undefined, { signal: over.signal }).catch(() => {})
      }
    }
    const progress = {
      responses,
      writes: newWrites,
      untilAccepted: (share: number) =>
        until(`${share} of all messages are accepted`, 180_000, async () => accepted >= share * burst.envelopes.length),
    }
    const writing = write()
    await Promise.all([...Array.from({ length: CONCURRENT_SENDERS }, send), fault(progress)])
    over.abort()
    await writing
    if (load.beforeResend !== undefined) {
      await podUnderFaults.waitUntilIdle(load.settledWithin)
      await load.beforeResend()
      queue = [...burst.envelopes]
      await Promise.all(Array.from({ length: CONCURRENT_SENDERS }, send))
    }
    writes.push(...newWrites)
    await podUnderFaults.waitUntilIdle(load.settledWithin)
    const violations = await findRunViolations(podUnderFaults, mergeBursts(bursts), localPosts, writes)
    return { violations, responses, writes: newWrites }
  }

  async function addLocalPosts({ alice, bob }: PodUnderFaults): Promise<readonly LocalPost[]> {
    const posts: LocalPost[] = []
    for (const person of [alice, bob, alice, bob]) {
      posts.push({ guid: (await addPost(pod, person)).guid, author: person.address })
    }
    return posts
  }

  return {
    run,
    addExpectedPosts: (posts) =>
      void bursts.push({ envelopes: [], posts, reshares: [], comments: [], likes: [], invalid: [] }),
  }
}

/** Makes the fake pods serve the posts, for fetches before the delivery. */
function serveRoots({ fakePods }: PodUnderFaults, people: readonly FakePerson[], { posts }: Burst): void {
  const byAddress = new Map(people.map((person) => [person.address, person]))
  for (const post of posts) {
    const author = byAddress.get(post.author)
    if (author !== undefined) fakePods.serve(author, post)
  }
}

function mergeBursts(bursts: readonly Burst[]): Burst {
  return {
    envelopes: bursts.flatMap(({ envelopes }) => envelopes),
    posts: bursts.flatMap(({ posts }) => posts),
    reshares: bursts.flatMap(({ reshares }) => reshares),
    comments: bursts.flatMap(({ comments }) => comments),
    likes: bursts.flatMap(({ likes }) => likes),
    invalid: bursts.flatMap(({ invalid }) => invalid),
  }
}

async function findRunViolations(
  { pod, otherPods, alice, logLines }: PodUnderFaults,
  burst: Burst,
  localPosts: readonly LocalPost[],
  writes: readonly PublishedPost[],
): Promise<readonly string[]> {
  const texts = new Set(writes.map(({ text }) => text))
  const own: { guid: string; text: string }[] = await pod
    .db('posts')
    .where({ authorId: alice.id })
    .select('guid', 'text')
  const found = own.filter(({ text }) => texts.has(text))
  const published: LocalPost[] = found.map(({ guid }) => ({ guid, author: alice.address }))
  const dead = await listDeadLetters(pod)
  const delivered = new Set(await pod.db('outbound_messages').where({ record: 'post' }).pluck('guid'))
  return [
    ...(await findViolations(pod, { burst, localPosts: [...localPosts, ...published] }, logLines())),
    ...writes
      .filter(({ guid }) => guid !== undefined && !found.some((post) => post.guid === guid))
      .map(({ text }) => `the API confirmed ${text}, but the post does not exist`),
    ...(new Set(found.map(({ text }) => text)).size < found.length ? ['a post of a client exists twice'] : []),
    ...found.filter(({ guid }) => !delivered.has(guid)).map(({ text }) => `no delivery exists for ${text}`),
    ...dead.map(({ queue, name, fault }) => `a dead letter, ${name} of ${queue}: ${fault}`),
    ...(await otherPods.missing()),
  ]
}
