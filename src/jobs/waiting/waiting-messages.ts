import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { type Counts, NO_COUNTS, raiseCountsSteps, raiseCountsValues } from '../../persistence/inbound/raise-counts.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import { rowsAsColumns } from '../../persistence/sql/rows-as-columns.js'
import type { Pod } from '../../pod/pod.js'
import { splitAddress } from '../../protocol/address.js'
import {
  type DataOf,
  discoverPersonJob,
  fetchEntityJob,
  receivePrivateJob,
  receivePublicJob,
  type WantedEntity,
  wakeWaitingJob,
} from '../definitions.js'
import { enqueueJobsOfKind, handOverAfter, markFailed } from '../outbox/outbox.js'
import type { OutboxJob } from '../queues/add-jobs.js'
import { REFERENCE_LIMITS } from './limits.js'
import { admitUnproven, boundUnproven, giveUpOverdueUnproven } from './unproven-messages.js'

/** How often one message may wait: a like for its comment, the comment for its post, the post for its author. */
const TIMES = 3
const PATIENCE = 6 * 3_600
/** Milliseconds before a fetch: under load a parent is often in a batch that has not committed yet. */
const GRACE = 1_000
/** Messages that one transaction resumes. */
const RESUMED_AT_ONCE = 1_000

/**
 * The prefix of a stored parent that is not visible to the author of the message. The message waits as for an unknown parent, and the
 * same pod gets a request, so that requests do not reveal that a private post exists. It never resumes.
 */
export const UNREADABLE = 'unreadable-'

/** An entity that messages wait for, as in the rows: `post:<guid>`, `comment:<guid>`, `person:<address>` … */
export type Thing = `${Kind}:${string}`

type Kind = keyof typeof tables | `${typeof UNREADABLE}${WantedEntity['type']}`

/** A message and the entity it waits for; its body is that of its job. */
export interface ParkedMessage {
  readonly waitsFor: Thing
  /** Set for a private one. */
  readonly recipientGuid?: string | undefined
  readonly payload: string
  readonly acceptedAt: Date
  /** How often it has waited before. */
  readonly times: number
  /** Addresses whose pods should have the entity; undefined: it cannot be fetched. */
  readonly fetchFrom?: string | undefined
  readonly orFetchFrom?: string | undefined
  /** Only an entity of this author is accepted. */
  readonly author?: string | undefined
  /** Seconds it waits at most. */
  readonly patience?: number | undefined
  /** The host of its signer, verified or claimed; bounds are counted by it. */
  readonly senderHost?: string | undefined
  /** The network address that posted it. */
  readonly source?: string | undefined
  /** False: its signer is unknown, so that the sender is not proven. */
  readonly signed?: boolean | undefined
}

/** What the outbox row of a resumed message carries beside its body. */
export interface ResumedMessage {
  readonly recipientGuid: string | null
  readonly times: number
  /** Its time is over: if the entity is still unknown, the message becomes a dead letter. */
  readonly last: boolean
}

/** The fetches that a message may still cause after so many waits: each wait passes half of them on to the entity it waits for. */
export function fetchesLeftAfter(times: number): number {
  return Math.floor(REFERENCE_LIMITS.fetchesOfMessage / 2 ** times)
}

export function mayWaitAgain({ times, last }: Pick<ResumedMessage, 'times' | 'last'>): boolean {
  return !last && times < TIMES
}

/**
 * Takes the locks of all entities that a transaction stores or waits for, in one order. The storing and the waiting transaction both
 * do, so that a message cannot miss its entity. Parents are locked in shared mode: several transactions may add to them.
 */
export async function lockThings(
  transaction: Knex.Transaction,
  things: readonly Thing[],
  shared: readonly Thing[] = [],
): Promise<void> {
  if (things.length + shared.length === 0) return
  await queryPrepared(transaction, 'locked-things', lockedThings, [things, shared])
}

/** A bound on locks of people: a conversation may name 255 unknown ones, and the lock table of a server has a few thousand entries. */
const LOCKS_OF_PEOPLE = 64

const LOCK_KEY = `case
  when starts_with(thing, 'person:') then hashtextextended(thing, 0) & ${LOCKS_OF_PEOPLE - 1}
  else hashtextextended(thing, 0)
end`

/** Takes each lock once, in its stronger mode: upgrading a shared lock would deadlock with a transaction that does the same. */
const lockedThings = `
  select count(case when alone then pg_advisory_xact_lock(key) else pg_advisory_xact_lock_shared(key) end)
  from (
    select ${LOCK_KEY} as key, bool_or(alone) as alone
    from (
      select thing, true as alone from unnest($1::text[]) as thing
      union all
      select thing, false from unnest($2::text[]) as thing
    ) as touched
    group by key order by key
  ) as sorted`

/**
 * Stores messages that wait, and enqueues fetches of the things they wait for. The locks of all these things must be held. Returns
 * the things that are stored by now: those given, and those that other transactions have stored meanwhile.
 */
export async function parkMessages(
  pod: Pick<Pod, 'jobs' | 'log'>,
  transaction: Knex.Transaction,
  waiting: readonly ParkedMessage[],
  stored: readonly Thing[],
): Promise<readonly Thing[]> {
  const meanwhile = await findStored(transaction, [...new Set(waiting.map(({ waitsFor }) => waitsFor))])
  // In one order: photos have no locks, and two posts may have the same ones.
  const available = [...new Set([...stored, ...meanwhile])].toSorted()
  const isStored = new Set(available)
  const kept = await admitUnproven(pod, transaction, waiting, isStored)
  const requested = await requestOnce(
    pod,
    transaction,
    kept.filter(({ waitsFor, signed = true }) => signed && !isStored.has(waitsFor)),
  )
  await insertWaiting(transaction, kept, requested)
  await boundUnproven(pod, transaction, kept)
  return available
}

/**
 * Raises the counters of what was stored, and turns messages that wait for these things into outbox rows. One statement for both:
 * a batch of one message stays within its number of statements.
 */
export async function raiseCountsAndResume(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  counts: Counts,
  things: readonly Thing[],
): Promise<void> {
  if (things.length === 0) return
  const resumed = await resume(transaction, things, counts)
  handOverAfter(pod, transaction, resumed)
  if (resumed.length === RESUMED_AT_ONCE) await enqueueJobsOfKind(pod, transaction, wakeWaitingJob, [{ things }])
}

/** Parks messages, and resumes those that wait for things that are stored by now. */
export async function parkAndResume(
  pod: Pick<Pod, 'jobs' | 'log'>,
  transaction: Knex.Transaction,
  waiting: readonly ParkedMessage[],
  stored: readonly Thing[],
): Promise<void> {
  await raiseCountsAndResume(pod, transaction, NO_COUNTS, await parkMessages(pod, transaction, waiting, stored))
}

/** Turns messages that wait for stored things into outbox rows, in transactions of bounded size. */
export async function resumeWaiting(pod: Pick<Pod, 'jobs' | 'db'>, things: readonly string[]): Promise<void> {
  let resumed = RESUMED_AT_ONCE
  while (resumed === RESUMED_AT_ONCE) {
    resumed = await pod.db.transaction(async (transaction) => {
      const rows = await resume(transaction, things, NO_COUNTS)
      handOverAfter(pod, transaction, rows)
      return rows.length
    })
  }
}

/** Marks an outbox row as a dead letter, and resumes the messages that waited for its effect for the last time. */
export async function giveUp(pod: Pick<Pod, 'jobs' | 'db'>, outboxId: number): Promise<void> {
  await pod.db.transaction(async (transaction) => {
    await markFailed(transaction, outboxId)
    handOverAfter(pod, transaction, await resumeLast(transaction, 'asked_by = ?', outboxId))
  })
}

/** Resumes messages whose time is over, and gives up unproven ones. Returns the number of resumed messages. */
export async function resumeOverdue(
  pod: Pick<Pod, 'jobs' | 'log'>,
  transaction: Knex.Transaction,
  limit: number,
): Promise<number> {
  await giveUpOverdueUnproven(pod, transaction, limit)
  const overdue = `id in (
    select id from waiting where due_at <= now() and signed order by due_at limit ? for update skip locked
  )`
  const rows = await resumeLast(transaction, overdue, limit)
  if (rows.length > 0) handOverAfter(pod, transaction, rows)
  return rows.length
}

/** An entity and the host from which it is requested. */
type FetchKey = `${Thing} ${string}`

/**
 * Enqueues one fetch for each entity and host, however many messages wait for it; returns the outbox rows of these jobs. A message that
 * names a pod without the entity does not delay messages that name another pod.
 */
async function requestOnce(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  waiting: readonly ParkedMessage[],
): Promise<ReadonlyMap<FetchKey, number>> {
  const wanted = new Map<FetchKey, ParkedMessage>()
  for (const message of waiting.toReversed()) {
    const name = fetchKeyOf(message)
    if (name !== undefined) wanted.set(name, message)
  }
  if (wanted.size === 0) return new Map()
  const requested = await findRequested(transaction, [...wanted.values()])
  const people = new Map<FetchKey, DataOf<typeof discoverPersonJob>>()
  const entities = new Map<FetchKey, WantedEntity>()
  for (const [name, { waitsFor, fetchFrom = '', orFetchFrom, author, times }] of wanted) {
    if (requested.has(name)) continue
    const [kind, key] = partsOf(waitsFor)
    if (kind === 'person') people.set(name, { address: key })
    else if (isFetchable(kind))
      entities.set(name, {
        ...fetchableOf(kind),
        guid: key,
        from: fetchFrom,
        orFrom: orFetchFrom,
        author,
        depth: 0,
        fetchesLeft: fetchesLeftAfter(times + 1) - 1,
      })
  }
  const finders = await enqueueJobsOfKind(pod, transaction, discoverPersonJob, [...people.values()])
  const fetchers = await enqueueJobsOfKind(pod, transaction, fetchEntityJob, [...entities.values()], { delay: GRACE })
  return new Map([...requested, ...pairsOf([...people.keys(), ...entities.keys()], [...finders, ...fetchers])])
}

function pairsOf(keys: readonly FetchKey[], rows: readonly number[]): (readonly [FetchKey, number])[] {
  return keys.flatMap((key, index) => {
    const row = rows[index]
    return row === undefined ? [] : [[key, row] as const]
  })
}

/** By the host of the last source: the sender, who has signed the message, and not a person it only names. */
function fetchKeyOf({ waitsFor, fetchFrom, orFetchFrom }: ParkedMessage): FetchKey | undefined {
  const at = orFetchFrom ?? fetchFrom
  const [kind] = partsOf(waitsFor)
  if (at === undefined || (kind !== 'person' && !isFetchable(kind))) return undefined
  return `${waitsFor} ${splitAddress(at)?.host ?? at}`
}

async function findRequested(
  transaction: Knex.Transaction,
  waiting: readonly ParkedMessage[],
): Promise<ReadonlyMap<FetchKey, number>> {
  const things = new Set(waiting.map(({ waitsFor }) => waitsFor))
  const rows = await queryPrepared<{ key: FetchKey; id: number }>(transaction, 'requested-already', requestedAlready, [
    [...things],
  ])
  return new Map(rows.map(({ key, id }) => [key, id]))
}

const requestedAlready = `
  select waits_for || ' ' || asked_of as key, max(asked_by) as id
  from unnest(${opaqueParam('$1', 'text[]')}) as thing join waiting on waits_for = thing
  where asked_by is not null
  group by waits_for, asked_of`

export function partsOf(thing: Thing): readonly [kind: Kind, key: string] {
  const colon = thing.indexOf(':')
  return [thing.slice(0, colon) as Kind, thing.slice(colon + 1)] // as the type of a thing says
}

type FetchableKind = WantedEntity['type'] | `${typeof UNREADABLE}${WantedEntity['type']}`

export function isFetchable(kind: string): kind is FetchableKind {
  return /^(unreadable-)?(post|poll|comment)$/.test(kind)
}

/** The entity to fetch. */
export function fetchableOf(kind: FetchableKind): Pick<WantedEntity, 'type' | 'isUnreadable'> {
  if (!kind.startsWith(UNREADABLE)) return { type: kind as WantedEntity['type'] } // as its type says
  return { type: kind.slice(UNREADABLE.length) as WantedEntity['type'], isUnreadable: true }
}

/** Sorted, so that two batches cannot deadlock. A repeated message is stored once. */
async function insertWaiting(
  transaction: Knex.Transaction,
  messages: readonly ParkedMessage[],
  requested: ReadonlyMap<FetchKey, number>,
): Promise<void> {
  if (messages.length === 0) return
  const keys = messages.map(fetchKeyOf)
  await queryPrepared(transaction, 'new-waiting', newWaiting, [
    ...rowsAsColumns(messages, ['waitsFor', 'payload', 'acceptedAt']),
    messages.map(({ recipientGuid }) => (recipientGuid === undefined ? receivePublicJob.name : receivePrivateJob.name)),
    messages.map(({ recipientGuid }) => recipientGuid ?? null),
    messages.map(digestOf),
    messages.map(({ times }) => times + 1),
    messages.map(({ patience = PATIENCE }) => patience),
    messages.map(({ waitsFor }, index) => keys[index]?.slice(waitsFor.length + 1) ?? null),
    keys.map((key) => (key && requested.get(key)) ?? null),
    messages.map(({ senderHost }) => senderHost ?? null),
    messages.map(({ source }) => source ?? null),
    messages.map(({ signed = true }) => signed),
    messages.map(({ payload }) => Buffer.byteLength(payload)),
  ])
}

const newWaiting = `
  insert into waiting (
    waits_for, payload, accepted_at, name, recipient_guid, digest, times, due_at, asked_of, asked_by,
    sender_host, source, signed, bytes
  )
  select
    waits_for, payload, accepted_at, name, recipient_guid, decode(digest, 'hex'), times,
    date_trunc('milliseconds', now()) + make_interval(secs => patience), asked_of, asked_by,
    sender_host, source, signed, bytes
  from unnest(
    ${opaqueParam('$1', 'text[]')}, $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::float[],
    $9::text[], $10::bigint[], $11::text[], $12::text[], $13::boolean[], $14::int[]
  ) as row(
    waits_for, payload, accepted_at, name, recipient_guid, digest, times, patience, asked_of, asked_by,
    sender_host, source, signed, bytes
  )
  order by digest
  on conflict (digest) do nothing`

function digestOf({ recipientGuid, payload }: ParkedMessage): string {
  return createHash('sha256')
    .update(JSON.stringify([recipientGuid, payload]))
    .digest('hex')
}

/**
 * Resumes the oldest messages that wait for these things, up to a limit. Joined and not `= any(…)`: see post-references.ts.
 */
async function resume(
  transaction: Knex.Transaction,
  things: readonly string[],
  counts: Counts,
): Promise<readonly OutboxJob[]> {
  const which = `using (
    select waiting.id from unnest(${opaqueParam('$1', 'text[]')}) as thing join waiting on waits_for = thing
    order by waiting.id limit ${RESUMED_AT_ONCE}
  ) as oldest where waiting.id = oldest.id`
  const statement = resumed(which, false, `, ${raiseCountsSteps(2)}`)
  return queryPrepared(transaction, 'resumed', statement, [things, ...raiseCountsValues(counts)])
}

/** Resumes messages for the last time: they wait no longer. */
async function resumeLast(transaction: Knex.Transaction, which: string, value: number): Promise<readonly OutboxJob[]> {
  const { rows } = await transaction.raw(resumed(`where ${which}`, true), [value])
  return rows
}

/** Each message returns to the queue by which it was received. */
function resumed(which: string, last: boolean, alongside = ''): string {
  return `
    with resumed as (
      delete from waiting ${which} returning waiting.*
    )${alongside}
    insert into outbox (queue, name, data, payload, accepted_at)
    select
      case when recipient_guid is null then 'inbound' else 'inbound-private' end,
      name,
      jsonb_build_object('recipientGuid', recipient_guid, 'times', times, 'last', ${last}),
      payload,
      accepted_at
    from resumed order by resumed.id
    returning id, queue, name`
}

/** Tables of the entities that a message can wait for, and their key columns. */
const tables = {
  post: ['posts', 'guid'],
  comment: ['comments', 'guid'],
  photo: ['photos', 'guid'],
  like: ['likes', 'guid'],
  poll: ['polls', 'guid'],
  poll_participation: ['poll_participations', 'guid'],
  participation: ['participations', 'guid'],
  conversation: ['conversations', 'guid'],
  message: ['messages', 'guid'],
  person: ['people', 'address'],
} as const

async function findStored(transaction: Knex.Transaction, things: readonly Thing[]): Promise<readonly Thing[]> {
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
