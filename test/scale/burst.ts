import { setTimeout as pause } from 'node:timers/promises'
import { listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import type { LocalClient, PodUnderFaults } from '../faults/matrix/pod-under-faults.js'
import { type Answer, askToReceive, publish, type Written } from '../faults/matrix/senders.js'
import { type Burst, type LocalPost, makeBurst } from '../soak/burst-messages.js'
import { wrongsOf } from '../soak/burst-outcome.js'
import { until } from '../soak/until.js'
import { addPost } from '../support/databases/rows.js'
import type { FakePerson } from '../support/federation/fake-pods.js'
import type { Outcome } from './part.js'

/** The progress of the burst, for actions during it. */
export interface Meanwhile {
  /** Resolves when this part of all messages has been accepted. */
  untilAccepted(share: number): Promise<void>
  /** Publishes a post by a client, which is checked at the end. */
  write(client: LocalClient, base?: string): Promise<Written>
}

const PEOPLE = 8
const LANES = 16
const AGAIN_AFTER = 250
const ACCEPTED_WITHIN = 90_000
const WRITE_INTERVAL_MS = 250

/**
 * Sends signed messages to both web processes of a pod, as fast as they are answered, while clients write; checks at the end
 * that every row, counter, notification and relay exists once.
 */
export async function sendBurst(
  podUnderFaults: PodUnderFaults,
  messages: number,
  meanwhile: (load: Meanwhile) => Promise<unknown> = async () => {},
): Promise<Outcome> {
  const { burst, localPosts } = await makeMessages(podUnderFaults, messages)
  const answers: Answer[] = []
  const written: Written[] = []
  let accepted = 0
  let isOver = false

  const line = [...burst.envelopes]
  async function send(): Promise<void> {
    for (let envelope = line.pop(); envelope !== undefined; envelope = line.pop()) {
      // Retries like other pods until the message is accepted.
      for (;;) {
        const answer = await askToReceive(podUnderFaults, '/receive/public', envelope)
        answers.push(answer)
        if (answer.status === 202) break
        await pause(AGAIN_AFTER)
      }
      accepted += 1
    }
  }
  async function write(client: LocalClient, base?: string): Promise<Written> {
    const post = await publish(podUnderFaults, client, base)
    written.push(post)
    return post
  }
  async function keepWriting(): Promise<void> {
    while (!isOver) {
      await write(podUnderFaults.alice)
      await pause(WRITE_INTERVAL_MS)
    }
  }

  const began = Date.now()
  const writing = keepWriting()
  await Promise.all([
    ...Array.from({ length: LANES }, send),
    meanwhile({
      write,
      untilAccepted: (share) =>
        until(`${share} of all is accepted`, ACCEPTED_WITHIN, async () => accepted >= share * burst.envelopes.length),
    }),
  ])
  const acceptedAt = Math.max(...answers.map(({ at, milliseconds }) => at + milliseconds))
  isOver = true
  await writing
  await podUnderFaults.settled()
  const wrongs = await wrongsWith(podUnderFaults, burst, localPosts, written)
  return {
    wrongs: [...wrongs, ...unexpected(answers, 'a message'), ...unexpected(written, 'a post of a client')],
    seen: [
      ['messages accepted (202)', accepted],
      ['… asked to come again (503)', answers.filter(({ status }) => status === 503).length],
      ['… longest time without a 202, s', seconds(findLongestGap(answers, began))],
      ['seconds until all were accepted', seconds(acceptedAt - began)],
      ['seconds until nothing was left to do', seconds(Date.now() - began)],
      ['posts written by clients in the meantime', written.filter(({ guid }) => guid !== undefined).length],
      ['rows, counters, notifications that are wrong', wrongs.length],
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
  // Every other pod returns a post that is requested before it was delivered.
  const byAddress = new Map(people.map((person) => [person.address, person]))
  for (const post of burst.posts) {
    const author = byAddress.get(post.author)
    if (author !== undefined) fakePods.serve(author, post)
  }
  return { burst, localPosts }
}

async function wrongsWith(
  { pod, otherPods, alice, bob, said }: PodUnderFaults,
  burst: Burst,
  localPosts: readonly LocalPost[],
  written: readonly Written[],
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
    ...(await wrongsOf(pod, burst, [...localPosts, ...published], said())),
    ...written
      .filter(({ guid }) => guid !== undefined && !found.some((post) => post.guid === guid))
      .map(({ text }) => `the API confirmed ${text}, but the post does not exist`),
    ...(new Set(found.map(({ text }) => text)).size < found.length ? ['a post of a client is there twice'] : []),
    ...dead.map(({ queue, name, fault }) => `a dead letter, ${name} of ${queue}: ${fault}`),
    ...(await otherPods.missing()),
  ]
}

/** Checks that every request got a response, and no client an unexpected error. */
function unexpected(answers: readonly Answer[], what: string): readonly string[] {
  const fakePods = new Set(
    answers.map(({ status }) => status).filter((status) => ![200, 202, 503].includes(Number(status))),
  )
  return [...fakePods].map((status) => `${what} was answered ${status}`)
}

function findLongestGap(answers: readonly Answer[], began: number): number {
  const accepted = answers.filter(({ status }) => status === 202).map(({ at, milliseconds }) => at + milliseconds)
  const times = [began, ...accepted].toSorted((one, other) => one - other)
  return Math.max(...times.map((time, index) => time - (times[index - 1] ?? time)))
}

export function seconds(milliseconds: number): string {
  return (milliseconds / 1_000).toFixed(1)
}
