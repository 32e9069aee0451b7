import { setTimeout as pause } from 'node:timers/promises'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { Person } from '../../src/persistence/models/person.js'
import type { Services } from '../../src/services/services.js'
import { addPost } from '../support/databases/rows.js'
import { type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { type Burst, type LocalPost, makeBurst } from './burst-messages.js'
import { findViolations } from './burst-outcome.js'
import { type KilledWorkers, startKilledWorkers } from './killed-workers.js'
import { type PodUnderLoad, startPodUnderLoad } from './pod-under-load.js'
import { until } from './until.js'

export interface BurstOptions {
  readonly store: 'Redis' | 'PostgreSQL'
  readonly messages: number
  readonly people: number
  /** Run time of the workers between two kills. */
  readonly lifeMs: number
  /** Number of kills. Default: workers are killed until all messages are accepted. */
  readonly kills?: number
  readonly threads: boolean
  readonly seed: number
  /** Time limit of each phase. */
  readonly withinMs: number
  report?(line: string): void
}

export interface BurstReport {
  /** All violations, as sentences. */
  readonly violations: readonly string[]
  readonly messages: number
  readonly killed: number
  readonly refusedOnReceipt: number
  readonly acceptedMs: number
  readonly settledMs: number
}

/** The queues of the workers; outbound deliveries stay in their rows, where they are counted. */
const QUEUES = ['inbound', 'inbound-private', 'fetch', 'fetch-unproven', 'maintenance'] as const
const SENDERS = 16
const PODS = 5

/**
 * A complete pod under a burst of mixed messages, while its workers are killed repeatedly and each of its stores once.
 * Senders retry like other pods until they get 202.
 */
export async function runBurst(options: BurstOptions): Promise<BurstReport> {
  const [others, podUnderLoad] = await Promise.all([startFakePods(), startPodUnderLoad(options.store)])
  const { pod, environment } = podUnderLoad
  let workers: KilledWorkers | undefined
  try {
    const localPosts = await addLocalPosts(pod)
    const burst = makeMessages(others, localPosts, options)
    options.report?.(`${burst.envelopes.length} messages were created`)
    const instructions = { environment, othersPort: others.server.port, threads: options.threads }
    workers = startKilledWorkers(instructions, options)
    const startedAt = Date.now()
    const refusedOnReceipt = await sendThroughCrashes(podUnderLoad, burst, options)
    const acceptedMs = Date.now() - startedAt
    await workers.stopKilling()
    options.report?.(`all messages are accepted, ${workers.killed} workers were killed; no more kills`)
    await until('no work is left', options.withinMs, () => isIdle(pod, QUEUES))
    const settledMs = Date.now() - startedAt
    const violations = [
      ...(await describeDeadLetters(pod)),
      ...(await findViolations(pod, { burst, localPosts }, workers.logLines)),
    ]
    const { killed } = workers
    return { violations, messages: burst.envelopes.length, killed, refusedOnReceipt, acceptedMs, settledMs }
  } finally {
    await workers?.close()
    await podUnderLoad.close()
    await others.close()
  }
}

async function addLocalPosts(pod: Services): Promise<readonly LocalPost[]> {
  const posts: LocalPost[] = []
  for (const username of ['alice', 'bob']) {
    const { guid } = await createUser(pod, { username, password: `the password of ${username}` })
    const person = await Person.query(pod.db).findOne({ guid }).throwIfNotFound()
    for (let index = 0; index < 10; index += 1) {
      posts.push({ guid: (await addPost(pod, person)).guid, author: person.address })
    }
  }
  return posts
}

/** Makes a burst by unknown people. Their pods also serve the posts, for fetches before the delivery. */
function makeMessages(fakePods: FakePods, localPosts: readonly LocalPost[], options: BurstOptions): Burst {
  const people = Array.from({ length: options.people }, (_, index) =>
    fakePods.person(`p${index}@q${index % PODS}.example`),
  )
  const burst = makeBurst(people, localPosts, options)
  const byAddress = new Map(people.map((person) => [person.address, person]))
  for (const post of burst.posts) {
    const author = byAddress.get(post.author)
    if (author !== undefined) fakePods.serve(author, post)
  }
  return burst
}

/** Sends most messages at once, the rest while the stores are killed. Returns the number of refused requests. */
async function sendThroughCrashes(podUnderLoad: PodUnderLoad, burst: Burst, options: BurstOptions): Promise<number> {
  const { pod, database, redis } = podUnderLoad
  const { envelopes } = burst
  const all = burst.posts.length + burst.reshares.length + burst.comments.length + burst.likes.length
  async function waitUntilStored(share: number): Promise<void> {
    await until(
      `${share} of all messages are stored`,
      options.withinMs,
      async () => (await countStored(pod)) > share * all,
    )
    options.report?.(`${share * 100} % are stored`)
  }
  const part = (from: number, to: number) => envelopes.slice(from * envelopes.length, to * envelopes.length)

  let refused = await sendAll(podUnderLoad, part(0, 0.6))
  await waitUntilStored(0.1)
  await waitUntilStored(0.3)
  options.report?.('PostgreSQL is killed')
  const [refusedByDatabase] = await Promise.all([sendAll(podUnderLoad, part(0.6, 0.8)), database.crash()])
  await waitUntilStored(0.5)
  options.report?.('Redis is killed, if it is in use')
  const [refusedByRedis] = await Promise.all([sendAll(podUnderLoad, part(0.8, 1)), redis?.crash?.()])
  refused += refusedByDatabase + refusedByRedis
  await waitUntilStored(0.7)
  return refused
}

/** Sends all messages, and returns the number of refused requests. */
async function sendAll({ post }: PodUnderLoad, envelopes: readonly string[]): Promise<number> {
  const queue = [...envelopes]
  let refused = 0
  async function send(): Promise<void> {
    for (let envelope = queue.pop(); envelope !== undefined; envelope = queue.pop()) {
      while ((await post('/receive/public', envelope)) !== 202) {
        refused += 1
        await pause(200)
      }
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, send))
  return refused
}

async function countStored({ db }: Services): Promise<number> {
  const { rows } = await db.raw(
    `select (select count(*) from posts) + (select count(*) from comments) + (select count(*) from likes) as stored`,
  )
  return Number(rows[0].stored)
}

async function describeDeadLetters(pod: Services): Promise<readonly string[]> {
  const dead = await listDeadLetters(pod)
  return dead.map(({ queue, name, fault }) => `a dead letter, ${name} of ${queue}: ${fault}`)
}
