import { setTimeout as pause } from 'node:timers/promises'
import { listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import type { LocalClient, PodUnderFaults } from '../faults/matrix/pod-under-faults.js'
import { type PublishedPost, postInbound, publish, type TimedResponse } from '../faults/matrix/senders.js'
import { type Burst, type LocalPost, makeBurst } from '../soak/burst-messages.js'
import { findViolations } from '../soak/burst-outcome.js'
import { until } from '../soak/until.js'
import { addPost } from '../support/databases/rows.js'
import type { FakePerson } from '../support/federation/fake-pods.js'
import type { Outcome } from './part.js'

/** Progress of the burst, and writes of clients, for actions during the burst. */
export interface BurstProgress {
  /** Resolves when this part of all messages has been accepted. */
  untilAccepted(share: number): Promise<void>
  /** Publishes a post of a client, which is checked at the end. */
  write(client: LocalClient, base?: string): Promise<PublishedPost>
}

const PEOPLE = 8
const CONCURRENT_SENDERS = 16
const RETRY_INTERVAL_MS = 250
const ACCEPTED_WITHIN = 90_000
const WRITE_INTERVAL_MS = 250

/**
 * Sends signed messages to both web processes of a pod as fast as possible, while clients write. Checks at the end that every row,
 * counter, notification and relay exists once.
 */
export async function sendBurst(
  podUnderFaults: PodUnderFaults,
  messages: number,
  duringBurst: (progress: BurstProgress) => Promise<unknown> = async () => {},
): Promise<Outcome> {
  const { burst, localPosts } = await makeMessages(podUnderFaults, messages)
  const responses: TimedResponse[] = []
  const written: PublishedPost[] = []
  let accepted = 0
  let isOver = false

  const queue = [...burst.envelopes]
  async function send(): Promise<void> {
    for (let envelope = queue.pop(); envelope !== undefined; envelope = queue.pop()) {
      // A message is sent again until it is accepted, as other pods do.
      for (;;) {
        const response = await postInbound(podUnderFaults, '/receive/public', envelope)
        responses.push(response)
        if (response.status === 202) break
        await pause(RETRY_INTERVAL_MS)
      }
      accepted += 1
    }
  }
  async function write(client: LocalClient, base?: string): Promise<PublishedPost> {
    const post = await publish(podUnderFaults, client, base)
    written.push(post)
    return post
  }
  async function writeUntilOver(): Promise<void> {
    while (!isOver) {
      await write(podUnderFaults.alice)
      await pause(WRITE_INTERVAL_MS)
    }
  }

  const startedAt = Date.now()
  const writer = writeUntilOver()
  await Promise.all([
    ...Array.from({ length: CONCURRENT_SENDERS }, send),
    duringBurst({
      write,
      untilAccepted: (share) =>
        until(
          `${share} of all messages are accepted`,
          ACCEPTED_WITHIN,
          async () => accepted >= share * burst.envelopes.length,
        ),
    }),
  ])
  const acceptedAt = Math.max(...responses.map(({ at, milliseconds }) => at + milliseconds))
  isOver = true
  await writer
  await podUnderFaults.waitUntilIdle()
  const violations = await findRunViolations(podUnderFaults, burst, localPosts, written)
  return {
    violations: [
      ...violations,
      ...describeUnexpected(responses, 'a message'),
      ...describeUnexpected(written, 'a post of a client'),
    ],
    results: [
      ['messages accepted (202)', accepted],
      ['… refused with 503', responses.filter(({ status }) => status === 503).length],
      ['… longest time without a 202, s', seconds(findLongestGap(responses, startedAt))],
      ['seconds until all were accepted', seconds(acceptedAt - startedAt)],
      ['seconds until no work was left', seconds(Date.now() - startedAt)],
      ['posts written by clients in the meantime', written.filter(({ guid }) => guid !== undefined).length],
      ['rows, counters, notifications that are wrong', violations.length],
    ],
  }
}

async function makeMessages(
  { pod, alice, bob, otherPods, fakePods }: PodUnderFaults,
  messages: number,
): Promise<{ readonly burst: Burst; readonly localPosts: readonly LocalPost[] }> {
  const localPosts: LocalPost[] = []
  for (const person of [alice, bob, alice, bob]) {
    localPosts.push({ guid: (await addPost(pod, person)).guid, author: person.address })
  }
  const people: FakePerson[] = []
  for (let index = 0; index < PEOPLE; index += 1) people.push(await otherPods.addKnownPerson())
  const burst = makeBurst(people, localPosts, { messages, seed: messages })
  // The pods of the authors serve the posts, for fetches before the delivery.
  const byAddress = new Map(people.map((person) => [person.address, person]))
  for (const post of burst.posts) {
    const author = byAddress.get(post.author)
    if (author !== undefined) fakePods.serve(author, post)
  }
  return { burst, localPosts }
}

async function findRunViolations(
  { pod, otherPods, alice, bob, logLines }: PodUnderFaults,
  burst: Burst,
  localPosts: readonly LocalPost[],
  written: readonly PublishedPost[],
): Promise<readonly string[]> {
  const texts = new Set(written.map(({ text }) => text))
  const rows: { guid: string; text: string; authorId: number }[] = await pod
    .db('posts')
    .whereIn('authorId', [alice.id, bob.id])
    .select('guid', 'text', 'authorId')
  // A post without a response may exist or not, but not twice.
  const found = rows.filter(({ text }) => texts.has(text))
  const published = found.map(({ guid, authorId }) => ({ guid, author: (authorId === bob.id ? bob : alice).address }))
  const dead = await listDeadLetters(pod)
  return [
    ...(await findViolations(pod, { burst, localPosts: [...localPosts, ...published] }, logLines())),
    ...written
      .filter(({ guid }) => guid !== undefined && !found.some((post) => post.guid === guid))
      .map(({ text }) => `the API confirmed ${text}, but the post does not exist`),
    ...(new Set(found.map(({ text }) => text)).size < found.length ? ['a post of a client exists twice'] : []),
    ...dead.map(({ queue, name, fault }) => `a dead letter, ${name} of ${queue}: ${fault}`),
    ...(await otherPods.missing()),
  ]
}

/** Describes missing responses and unexpected statuses. */
function describeUnexpected(responses: readonly TimedResponse[], request: string): readonly string[] {
  const statuses = new Set(
    responses.map(({ status }) => status).filter((status) => ![200, 202, 503].includes(Number(status))),
  )
  return [...statuses].map((status) => `${request} got ${status}`)
}

function findLongestGap(responses: readonly TimedResponse[], startedAt: number): number {
  const accepted = responses.filter(({ status }) => status === 202).map(({ at, milliseconds }) => at + milliseconds)
  const times = [startedAt, ...accepted].toSorted((one, other) => one - other)
  return Math.max(...times.map((time, index) => time - (times[index - 1] ?? time)))
}

export function seconds(milliseconds: number): string {
  return (milliseconds / 1_000).toFixed(1)
}
