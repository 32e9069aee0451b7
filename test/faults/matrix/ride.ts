import { setTimeout as pause } from 'node:timers/promises'
import { inject } from 'vitest'
import { listDeadLetters } from '../../../src/jobs/dead-letters/dead-letters.js'
import { type Burst, type LocalPost, makeBurst } from '../../soak/burst-messages.js'
import { wrongsOf } from '../../soak/burst-outcome.js'
import { until } from '../../soak/until.js'
import type { FakePerson } from '../../support/fake-pod.js'
import { addPost } from '../../support/network.js'
import type { AssailedPod } from './assailed-pod.js'
import { type Answer, askToReceive, publish, publishPatiently, type Written } from './senders.js'

interface Load {
  readonly messages: number
  readonly perSecond: number
  /** Posts of a client each second, while messages come. */
  readonly writesPerSecond?: number
  /** Clients ask the other process when one does not answer, or asks them to come again. */
  readonly patientClients?: boolean
  /** Where it takes longer than usual until nothing is left to do, in milliseconds. */
  readonly settledWithin?: number
  /**
   * For faults that may lose what nobody has begun to take in: what comes to an end without it does so first, then this is done,
   * and everything is sent once more.
   */
  readonly beforeSentAgain?: () => Promise<unknown>
}

/** How far a load has come. */
interface Progress {
  readonly answers: readonly Answer[]
  readonly writes: readonly Written[]
  /** Resolves when this part of all messages has been accepted. */
  untilAccepted(share: number): Promise<void>
}

interface Outcome {
  /** Everything that is not as it must be, in sentences. */
  readonly wrongs: readonly string[]
  readonly answers: readonly Answer[]
  readonly writes: readonly Written[]
}

/** A pod under loads that come one after the other; each outcome counts everything that has ever been sent to it. */
export interface Ride {
  /** Sends the load while the fault is made, and tells what was wrong when nothing was left to do. */
  under(load: Load, fault: (progress: Progress) => Promise<unknown>): Promise<Outcome>
  /** What is sent beside the loads, and must be there too. */
  alsoSent(posts: Burst['posts']): void
}

const PEOPLE = 8
const LANES = 8
const AGAIN_AFTER = 250

export function openRide(assailed: AssailedPod): Ride {
  const { pod } = assailed
  const localPosts: LocalPost[] = []
  const bursts: Burst[] = []
  const writes: Written[] = []

  async function under(load: Load, fault: (progress: Progress) => Promise<unknown>): Promise<Outcome> {
    const seed = inject('seed') + bursts.length
    const posts = await addLocalPosts(assailed)
    const people: FakePerson[] = []
    for (let index = 0; index < PEOPLE; index += 1) people.push(await assailed.neighbours.acquaintance())
    const burst = makeBurst(people, posts, { messages: load.messages, seed })
    localPosts.push(...posts)
    bursts.push(burst)
    serveRoots(assailed, people, burst)

    const answers: Answer[] = []
    const written: Written[] = []
    let accepted = 0
    const over = new AbortController()
    let line = [...burst.envelopes]
    async function send(): Promise<void> {
      for (let envelope = line.pop(); envelope !== undefined; envelope = line.pop()) {
        const next = pause((LANES * 1_000) / load.perSecond)
        for (;;) {
          const answer = await askToReceive(assailed, '/receive/public', envelope)
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
        written.push(await (load.patientClients === true ? publishPatiently : publish)(assailed, assailed.alice))
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
      await assailed.settled(load.settledWithin)
      await load.beforeSentAgain()
      line = [...burst.envelopes]
      await Promise.all(Array.from({ length: LANES }, send))
    }
    writes.push(...written)
    await assailed.settled(load.settledWithin)
    const wrongs = await wrongsWith(assailed, merged(bursts), localPosts, writes)
    return { wrongs, answers, writes: written }
  }

  async function addLocalPosts({ alice, bob }: AssailedPod): Promise<readonly LocalPost[]> {
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

/** Whoever is asked for a post before it has come gives it away. */
function serveRoots({ others }: AssailedPod, people: readonly FakePerson[], { posts }: Burst): void {
  const byAddress = new Map(people.map((person) => [person.address, person]))
  for (const post of posts) {
    const author = byAddress.get(post.author)
    if (author !== undefined) others.serve(author, post)
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
  { pod, neighbours, alice, said }: AssailedPod,
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
      .map(({ text }) => `a client was told that ${text} is published, and it is not there`),
    ...(new Set(found.map(({ text }) => text)).size < found.length ? ['a post of a client is there twice'] : []),
    ...found.filter(({ guid }) => !told.has(guid)).map(({ text }) => `nobody was told of ${text}`),
    ...dead.map(({ queue, name, fault }) => `a dead letter, ${name} of ${queue}: ${fault}`),
    ...(await neighbours.missing()),
  ]
}
