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

const RETRY_INTERVAL_MS = 250
const CONCURRENT_SENDERS = 32
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

export function makeMessages({ guid: parent_guid, author, people }: Root, count: number): readonly FloodMessage[] {
  return Array.from({ length: Math.round(count) }, (_, index) => {
    const writer = people[index % people.length] ?? author
    const rest = { parent_guid, text: 'I do', created_at: createdAt }
    const comment: CommentEntity = { type: 'comment', author: writer.address, guid: newGuid(), ...rest }
    const author_signature = signRelayable(comment, writer.privateKey)
    return { guid: comment.guid, envelope: envelopeOf(author, { ...comment, author_signature }) }
  })
}

/**
 * Sends messages from many sources at a constant rate over this time, or as fast as possible if it is 0. Refused messages are sent
 * again. `onSend` gets the time at which a message is due.
 */
export async function sendAtRate(
  base: string,
  messages: readonly FloodMessage[],
  seconds: number,
  onSend: (guid: string, due: number) => void = () => {},
): Promise<void> {
  const startedAt = performance.now()
  let next = 0
  async function sendUntilDone(): Promise<void> {
    for (let index = next++; index < messages.length; index = next++) {
      const message = messages[index]
      if (message === undefined) return
      const due = seconds === 0 ? performance.now() : startedAt + (index / messages.length) * seconds * 1_000
      if (due > performance.now()) await pause(due - performance.now())
      onSend(message.guid, due)
      while (!(await isAccepted(base, message, sourceAddress(index)))) await pause(RETRY_INTERVAL_MS)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_SENDERS }, sendUntilDone))
}

const sourceAddress = (index: number) => `203.0.113.${index % 200}`

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

/** Sends all messages from one source as fast as possible, in a separate process. Returns the send times and the number of accepted messages. */
export async function sendFlood(base: string, messages: readonly FloodMessage[], clientAddress: string) {
  const loader = startPostLoader()
  try {
    const bodies = messages.map(({ envelope }) => envelope)
    const task = {
      port: Number(new URL(base).port),
      path: '/receive/public',
      connections: CONCURRENT_SENDERS,
      bodies,
      clientAddress,
    }
    const { requests, failures, sentAt } = await runPostLoad(loader, task)
    return { accepted: requests - failures, sentAt: sentAt.map((time) => time - performance.timeOrigin) }
  } finally {
    loader.kill()
  }
}

/** Polls for the expected comments several times per second. */
export function watchArrivals({ db }: Services) {
  const waiting = new Set<string>()
  const arrived = new Map<string, number>()
  let isOver = false

  async function recordArrivals(): Promise<void> {
    const { rows } = await db.raw('select guid from comments where guid = any(?)', [[...waiting]])
    const now = performance.now()
    for (const { guid } of rows as readonly { guid: string }[]) {
      arrived.set(guid, now)
      waiting.delete(guid)
    }
  }
  async function pollUntilOver(): Promise<void> {
    while (!isOver) {
      const next = pause(POLL_INTERVAL_MS)
      if (waiting.size > 0) await recordArrivals()
      await next
    }
  }
  const polling = pollUntilOver()
  return {
    expect: (guid: string) => void waiting.add(guid),
    /** Stops, and returns the time at which each comment was stored. */
    async end(): Promise<ReadonlyMap<string, number>> {
      isOver = true
      await polling
      await recordArrivals()
      return arrived
    },
  }
}
