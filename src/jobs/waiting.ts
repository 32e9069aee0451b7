import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import type { Pod } from '../pod.js'
import type { ProtocolFault } from '../protocol/errors.js'
import { handOverAfter, type Work } from './outbox.js'
import type { OutboxJob } from './queues.js'

/** How often one message may wait: a like for its comment, that for its post, that for its author. */
const TIMES = 3

/** What something waits for, as the rows say it: `post:<guid>`, `comment:<guid>`, `person:<address>` … */
export type Thing = `${keyof typeof tables}:${string}`

/** Understood, but something it refers to is not here. */
export class NotYet extends Error {
  override name = 'NotYet'
  readonly waitsFor: Thing
  /** What it dies of when the time is over. */
  readonly fault: ProtocolFault

  constructor(waitsFor: Thing, fault: ProtocolFault = 'TargetNotFound') {
    super(`${waitsFor} is not here yet`)
    this.waitsFor = waitsFor
    this.fault = fault
  }
}

/** A message with what it waits for; its body as its job carried it. */
export interface ParkedMessage {
  readonly waitsFor: Thing
  readonly name: string
  /** Set for a private one. */
  readonly recipientGuid: string | undefined
  readonly payload: string
  readonly acceptedAt: Date
  /** How often it has waited before. */
  readonly times: number
}

/** What the outbox row of a woken message carries beside its body. */
interface WokenMessage {
  readonly recipientGuid: string | null
  readonly times: number
  /** Its time is over: if the thing is still unknown now, it ends as a dead letter. */
  readonly last: boolean
}

/**
 * Takes the locks of all things that a transaction stores or waits for, in one order. Both sides do, so a message that
 * waits and the thing it waits for cannot miss each other.
 */
export async function lockThings(transaction: Knex.Transaction, things: readonly Thing[]): Promise<void> {
  if (things.length === 0) return
  await transaction.raw(
    `select pg_advisory_xact_lock(key) from (
       select distinct hashtextextended(thing, 0) as key from unnest(?::text[]) as thing order by key
     ) as sorted`,
    [[...things]],
  )
}

/**
 * Stores messages that wait, and turns those that waited for what is here by now into outbox rows. The locks of all these
 * things must be held.
 */
export async function waitAndWake(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  waiting: readonly ParkedMessage[],
  stored: readonly Thing[],
): Promise<void> {
  await insertWaiting(transaction, waiting)
  const meanwhile = await thingsHere(transaction, [...new Set(waiting.map(({ waitsFor }) => waitsFor))])
  const here = [...new Set([...stored, ...meanwhile])]
  if (here.length === 0) return
  handOverAfter(pod, transaction, await wake(transaction, 'waits_for = any(?)', [here], false))
}

/** Parks the message of a running job, and ends that job's outbox row with it. */
export async function waitFor(
  pod: Pick<Pod, 'jobs' | 'db'>,
  waitsFor: Thing,
  name: string,
  work: Work & { readonly payload: string },
): Promise<void> {
  const { recipientGuid, times } = wokenFrom(work.data)
  const acceptedAt = work.acceptedAt ?? new Date()
  await pod.db.transaction(async (transaction) => {
    await work.finish(transaction)
    await lockThings(transaction, [waitsFor])
    const message = {
      waitsFor,
      name,
      recipientGuid: recipientGuid ?? undefined,
      payload: work.payload,
      acceptedAt,
      times,
    }
    await waitAndWake(pod, transaction, [message], [])
  })
}

export function mayWaitAgain(data: unknown): boolean {
  const { times, last } = wokenFrom(data)
  return !last && times < TIMES
}

function wokenFrom(data: unknown): WokenMessage {
  const known: Partial<WokenMessage> = typeof data === 'object' && data !== null ? data : {}
  return { recipientGuid: known.recipientGuid ?? null, times: known.times ?? 0, last: known.last ?? false }
}

/** The backstop: messages whose time is over become jobs once more. Returns how many. */
export async function wakeOverdue(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  limit: number,
): Promise<number> {
  const overdue = `id in (select id from waiting where due_at <= now() order by due_at limit ? for update skip locked)`
  const rows = await wake(transaction, overdue, [limit], true)
  if (rows.length > 0) handOverAfter(pod, transaction, rows)
  return rows.length
}

/** Sorted, and the same message only once: two batches never wait for each other, and a repeat waits with the first. */
async function insertWaiting(transaction: Knex.Transaction, messages: readonly ParkedMessage[]): Promise<void> {
  if (messages.length === 0) return
  const rows = messages.map((message) => ({
    waits_for: message.waitsFor,
    name: message.name,
    recipient_guid: message.recipientGuid ?? null,
    payload: message.payload,
    accepted_at: message.acceptedAt.toISOString(),
    digest: digestOf(message),
    times: message.times + 1,
  }))
  await transaction.raw(
    `insert into waiting (waits_for, name, recipient_guid, payload, accepted_at, digest, times)
     select waits_for, name, recipient_guid, payload, accepted_at, decode(digest, 'hex'), times
     from json_to_recordset(?::json) as row(
       waits_for text, name text, recipient_guid text, payload text, accepted_at timestamptz, digest text, times smallint
     )
     order by digest
     on conflict (digest) do nothing`,
    [JSON.stringify(rows)],
  )
}

function digestOf({ name, recipientGuid, payload }: ParkedMessage): string {
  return createHash('sha256')
    .update(JSON.stringify([name, recipientGuid, payload]))
    .digest('hex')
}

/** A message came in by the queue of its channel, and goes back to it. */
async function wake(
  transaction: Knex.Transaction,
  which: string,
  values: readonly Knex.RawBinding[],
  last: boolean,
): Promise<readonly OutboxJob[]> {
  const { rows } = await transaction.raw(
    `with woken as (
       delete from waiting where ${which} returning *
     )
     insert into outbox (queue, name, data, payload, accepted_at)
     select
       case when recipient_guid is null then 'inbound' else 'inbound-private' end,
       name,
       jsonb_build_object('recipientGuid', recipient_guid, 'times', times, 'last', ?::boolean),
       payload,
       accepted_at
     from woken order by woken.id
     returning id, queue, name`,
    [...values, last],
  )
  return rows
}

/** Where the things are kept that a message can wait for, and by which column they are known. */
const tables = {
  post: ['posts', 'guid'],
  comment: ['comments', 'guid'],
  photo: ['photos', 'guid'],
  like: ['likes', 'guid'],
  poll: ['polls', 'guid'],
  poll_participation: ['poll_participations', 'guid'],
  conversation: ['conversations', 'guid'],
  message: ['messages', 'guid'],
  person: ['people', 'address'],
} as const

async function thingsHere(transaction: Knex.Transaction, things: readonly Thing[]): Promise<readonly Thing[]> {
  const kinds = Object.entries(tables).filter(([kind]) => things.some((thing) => thing.startsWith(`${kind}:`)))
  if (kinds.length === 0) return []
  const finds = kinds.map(
    ([kind, [table, column]]) => `select '${kind}:' || ${column} as thing from ${table} where ${column} = any(?)`,
  )
  const names = kinds.map(([kind]) =>
    things.filter((thing) => thing.startsWith(`${kind}:`)).map((thing) => thing.slice(kind.length + 1)),
  )
  const { rows } = await transaction.raw(finds.join(' union all '), names)
  return rows.map((row: { thing: Thing }) => row.thing)
}
