import { setTimeout as pause } from 'node:timers/promises'
import { inject } from 'vitest'
import { listDeadLetters } from '../../../src/jobs/dead-letters/find-dead-letters.js'
import { type Burst, type LocalPost, makeBurst } from '../../soak/burst-messages.js'
import { wrongsOf } from '../../soak/burst-outcome.js'
import { until } from '../../soak/until.js'
import { addPost } from '../../support/databases/rows.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import type { PodUnderFaults } from './pod-under-faults.js'
import { type Answer, askToReceive, publish, publishPatiently, type Written } from './senders.js'

interface Load {
  readonly messages: number
  readonly perSecond: number
  /** Posts of a client per second while messages arrive. */
  readonly writesPerSecond?: number
  /** Clients retry at the other process after no response or 503. */
  readonly patientClients?: boolean
  /** Milliseconds until no work is left, if longer than usual. */
  readonly settledWithin?: number
  /**
   * For faults that may lose messages no worker has started: first all other work ends, then this function runs,
   * and all messages are sent once more.
   */
  readonly beforeSentAgain?: () => Promise<unknown>
}

/** Progress of a load. */
interface Progress {
  readonly answers: readonly Answer[]
  readonly writes: readonly Written[]
  /** Resolves when this part of all messages has been accepted. */
  untilAccepted(share: number): Promise<void>
}

interface Outcome {
  /** All violations, as sentences. */
  readonly wrongs: readonly string[]
  readonly answers: readonly Answer[]
  readonly writes: readonly Written[]
}

/** A pod under consecutive loads; each outcome covers all messages since the start. */
export interface Ride {
  /** Sends the load during the fault; returns the violations found when no work is left. */
  under(load: Load, fault: (progress: Progress) => Promise<unknown>): Promise<Outcome>
  /** Messages sent in addition to the loads, which must be stored as well. */
  alsoSent(posts: Burst['posts']): void
}

const PEOPLE = 8
const LANES = 8
const AGAIN_AFTER = 250

export function openRide(podUnderFaults: PodUnderFaults): Ride {
  const { pod } = podUnderFaults
  const localPosts: LocalPost[] = []
  const bursts: Burst[] = []
  const writes: Written[] = []

  async function under(load: Load, fault: (progress: Progress) => Promise<unknown>): Promise<Outcome> {
    const seed = inject('seed') + bursts.length
    const posts = await addLocalPosts(podUnderFaults)
    const people: FakePerson[] = []
    for (let index = 0; index < PEOPLE; index += 1) people.push(await podUnderFaults.otherPods.addKnownPerson())
    // A pod that has never answered gets few relays (`relaysOfNeverAnsweredPod`), and no delivery may succeed while workers are killed.
    await pod.db('pods').whereNull('answeredAt').update({ answeredAt: new Date() })
    const burst = makeBurst(people, posts, { messages: load.messages, seed })
    localPosts.push(...posts)
    bursts.push(burst)
    serveRoots(podUnderFaults, people, burst)

    const answers: Answer[] = []
    const written: Written[] = []
    let accepted = 0
    const over = new AbortController()
    let line = [...burst.envelopes]
    async function send(): Promise<void> {
      for (let envelope = line.pop(); envelope !== undefined; envelope = line.pop()) {
        const next = pause((LANES * 1_000) / load.perSecond)
        for (;;) {
          const answer = await askToReceive(podUnderFaults, '/receive/public', envelope)
          answers.push(answer)
          if (answer.status === 202) break
          await pause(AGAIN_AFTER)
        }
        accepted += 1
        await next
      }
    }
    async function write(): Promise<void> {
      const every = 1_000 / (load.writesPerSecond ?? 0)
      while (load.writesPerSecond !== undefined && !over.signal.aborted) {
        written.push(
          await (load.patientClients === true ? publishPatiently : publish)(podUnderFaults, podUnderFaults.alice),
        )
        await pause(every, undefined, { signal: over.signal }).catch(() => {})
      }
    }
    const progress = {
      answers,
      writes: written,
      untilAccepted: (share: number) =>
        until(`${share} of all is accepted`, 180_000, async () => accepted >= share * burst.envelopes.length),
    }
    const writing = write()
    await Promise.all([...Array.from({ length: LANES }, send), fault(progress)])
    over.abort()
    await writing
    if (load.beforeSentAgain !== undefined) {
      await podUnderFaults.settled(load.settledWithin)
      await load.beforeSentAgain()
      line = [...burst.envelopes]
      await Promise.all(Array.from({ length: LANES }, send))
    }
    writes.push(...written)
    await podUnderFaults.settled(load.settledWithin)
    const wrongs = await wrongsWith(podUnderFaults, merged(bursts), localPosts, writes)
    return { wrongs, answers, writes: written }
  }

  async function addLocalPosts({ alice, bob }: PodUnderFaults): Promise<readonly LocalPost[]> {
    const posts: LocalPost[] = []
    for (const person of [alice, bob, alice, bob]) {
      posts.push({ guid: (await addPost(pod, person)).guid, author: person.address })
    }
    return posts
  }

  return {
    under,
    alsoSent: (posts) => void bursts.push({ envelopes: [], posts, reshares: [], comments: [], likes: [], broken: [] }),
  }
}

/** Any of the pods returns a post that is requested before it was delivered. */
function serveRoots({ fakePods }: PodUnderFaults, people: readonly FakePerson[], { posts }: Burst): void {
  const byAddress = new Map(people.map((person) => [person.address, person]))
  for (const post of posts) {
    const author = byAddress.get(post.author)
    if (author !== undefined) fakePods.serve(author, post)
  }
}

function merged(bursts: readonly Burst[]): Burst {
  return {
    envelopes: bursts.flatMap(({ envelopes }) => envelopes),
    posts: bursts.flatMap(({ posts }) => posts),
    reshares: bursts.flatMap(({ reshares }) => reshares),
    comments: bursts.flatMap(({ comments }) => comments),
    likes: bursts.flatMap(({ likes }) => likes),
    broken: bursts.flatMap(({ broken }) => broken),
  }
}

async function wrongsWith(
  { pod, otherPods, alice, said }: PodUnderFaults,
  burst: Burst,
  localPosts: readonly LocalPost[],
  writes: readonly Written[],
): Promise<readonly string[]> {
  const texts = new Set(writes.map(({ text }) => text))
  const own: { guid: string; text: string }[] = await pod
    .db('posts')
    .where({ authorId: alice.id })
    .select('guid', 'text')
  const found = own.filter(({ text }) => texts.has(text))
  const published: LocalPost[] = found.map(({ guid }) => ({ guid, author: alice.address }))
  const dead = await listDeadLetters(pod)
  const told = new Set(await pod.db('outbound_messages').where({ record: 'post' }).pluck('guid'))
  return [
    ...(await wrongsOf(pod, burst, [...localPosts, ...published], said())),
    ...writes
      .filter(({ guid }) => guid !== undefined && !found.some((post) => post.guid === guid))
      .map(({ text }) => `the API confirmed ${text}, but the post does not exist`),
    ...(new Set(found.map(({ text }) => text)).size < found.length ? ['a post of a client is there twice'] : []),
    ...found.filter(({ guid }) => !told.has(guid)).map(({ text }) => `no delivery exists for ${text}`),
    ...dead.map(({ queue, name, fault }) => `a dead letter, ${name} of ${queue}: ${fault}`),
    ...(await otherPods.missing()),
  ]
}
