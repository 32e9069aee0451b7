import { setTimeout as pause } from 'node:timers/promises'
import { runPostLoad, startPostLoader } from '../../bench/load/post-loader.js'
import { newGuid } from '../../src/domain/new-guid.js'
import type { CommentEntity } from '../../src/protocol/entities/relayables.js'
import { signRelayable } from '../../src/protocol/signatures/relayable-signature.js'
import type { Services } from '../../src/services/services.js'
import { envelopeOf } from '../support/federation/envelopes.js'
import type { FakePerson } from '../support/federation/fake-pods.js'

/** A comment of a remote person on a remote post: its only effect is its row. */
export interface FloodMessage {
  readonly guid: string
  readonly envelope: string
}

export interface Root {
  readonly guid: string
  readonly author: FakePerson
  readonly people: readonly FakePerson[]
}

const AGAIN_AFTER = 250
const LANES = 32
const POLL_INTERVAL_MS = 50
const createdAt = new Date('2025-05-06T07:08:09Z')

/** The post that all comments refer to. */
export async function makeRoot(people: readonly FakePerson[], base: string): Promise<Root> {
  const [author] = people
  if (author === undefined) throw new Error('The flood needs an author.')
  const guid = newGuid()
  const rest = { created_at: createdAt, public: true, text: 'Say something', photos: [] }
  const post = envelopeOf(author, { type: 'status_message', author: author.address, guid, ...rest })
  await sendAtRate(base, [{ guid, envelope: post }], 0)
  return { guid, author, people }
}

export function makeMessages({ guid: parent_guid, author, people }: Root, many: number): readonly FloodMessage[] {
  return Array.from({ length: Math.round(many) }, (_, index) => {
    const writer = people[index % people.length] ?? author
    const rest = { parent_guid, text: 'I do', created_at: createdAt }
    const comment: CommentEntity = { type: 'comment', author: writer.address, guid: newGuid(), ...rest }
    const author_signature = signRelayable(comment, writer.privateKey)
    return { guid: comment.guid, envelope: envelopeOf(author, { ...comment, author_signature }) }
  })
}

/**
 * Many sources send evenly over this many seconds, or as fast as possible, and retry refused messages. Latency counts from the due time.
 */
export async function sendAtRate(
  base: string,
  messages: readonly FloodMessage[],
  seconds: number,
  sent: (guid: string, due: number) => void = () => {},
): Promise<void> {
  const began = performance.now()
  let next = 0
  async function sendInTurn(): Promise<void> {
    for (let index = next++; index < messages.length; index = next++) {
      const message = messages[index]
      if (message === undefined) return
      const due = seconds === 0 ? performance.now() : began + (index / messages.length) * seconds * 1_000
      if (due > performance.now()) await pause(due - performance.now())
      sent(message.guid, due)
      while (!(await isAccepted(base, message, othersAt(index)))) await pause(AGAIN_AFTER)
    }
  }
  await Promise.all(Array.from({ length: LANES }, sendInTurn))
}

const othersAt = (index: number) => `203.0.113.${index % 200}`

async function isAccepted(base: string, { envelope }: FloodMessage, ip: string): Promise<boolean> {
  try {
    const headers = { 'x-forwarded-for': ip }
    const response = await fetch(`${base}/receive/public`, { method: 'POST', headers, body: envelope })
    await response.arrayBuffer()
    return response.status === 202
  } catch {
    return false
  }
}

/** One source sends all messages as fast as they are accepted, from its own process. Returns the send times and the number accepted. */
export async function flood(base: string, messages: readonly FloodMessage[], clientAddress: string) {
  const loader = startPostLoader()
  try {
    const bodies = messages.map(({ envelope }) => envelope)
    const task = {
      port: Number(new URL(base).port),
      path: '/receive/public',
      connections: LANES,
      bodies,
      clientAddress,
    }
    const { requests, failures, sentAt } = await runPostLoad(loader, task)
    return { accepted: requests - failures, sentAt: sentAt.map((time) => time - performance.timeOrigin) }
  } finally {
    loader.kill()
  }
}

/** Polls many times a second for the expected comments. */
export function watchArrivals({ db }: Services) {
  const waiting = new Set<string>()
  const arrived = new Map<string, number>()
  let isOver = false

  async function look(): Promise<void> {
    const { rows } = await db.raw('select guid from comments where guid = any(?)', [[...waiting]])
    const now = performance.now()
    for (const { guid } of rows as readonly { guid: string }[]) {
      arrived.set(guid, now)
      waiting.delete(guid)
    }
  }
  async function lookAgainAndAgain(): Promise<void> {
    while (!isOver) {
      const next = pause(POLL_INTERVAL_MS)
      if (waiting.size > 0) await look()
      await next
    }
  }
  const looking = lookAgainAndAgain()
  return {
    expect: (guid: string) => void waiting.add(guid),
    /** When each comment was stored. */
    async end(): Promise<ReadonlyMap<string, number>> {
      isOver = true
      await looking
      await look()
      return arrived
    },
  }
}
