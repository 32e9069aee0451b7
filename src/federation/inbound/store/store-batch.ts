import type { Knex } from 'knex'
import { takeRows } from '../../../jobs/outbox/outbox.js'
import { lockThings, type ParkedMessage, type Thing, waitAndWake } from '../../../jobs/waiting/waiting-messages.js'
import { inTransaction } from '../../../persistence/database/errors.js'
import { raiseCounts } from '../../../persistence/inbound/raise-counts.js'
import { Pod as OtherPod } from '../../../persistence/models/pod.js'
import { provePeople } from '../../../persistence/people/person-guids.js'
import type { Pod } from '../../../pod/pod.js'
import { splitAddress } from '../../../protocol/address.js'
import type { RetractionEntity } from '../../../protocol/entities/retraction.js'
import { answerForClosed } from '../answer-for-closed-accounts.js'
import type {
  Arrival,
  IgnoredMessage,
  InboundMessage,
  RejectedMessage,
  StepResult,
  StoredRecord,
  StoreResult,
  WaitingMessage,
} from '../batch.js'
import { followUp } from '../follow-up.js'
import { parentOf, targetThing } from '../references.js'
import { countsOf } from './counts-of-stored.js'
import type { StorableEntity } from './storable-entity.js'
import { storeAccountMigrations } from './store-account-migrations.js'
import { storeConversations, storeMessages } from './store-conversations.js'
import { storeAccountDeletions, storeContacts, storeProfiles } from './store-people.js'
import { storePhotos } from './store-photos.js'
import { storeReshares, storeStatusMessages } from './store-posts.js'
import { storeComments, storeLikes, storeParticipations, storeVotes } from './store-relayables.js'
import { leaveTombstones, storeRetractions } from './store-retractions.js'

/** Stores any number of one kind; `now` bounds the times that other pods tell. */
type Store<Entity extends StorableEntity> = (
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<Entity>[],
  now: Date,
  pod: Pod,
) => Promise<StoreResult<Entity>>

type Kind = StorableEntity['type']

/**
 * Everything that other pods may send us; a new entity does not compile until it has a line here. Stored from top to bottom:
 * parents before children, locks always in one direction.
 */
const kinds: { readonly [Type in Kind]: Store<Extract<StorableEntity, { type: Type }>> } = {
  profile: storeProfiles,
  status_message: storeStatusMessages,
  reshare: storeReshares,
  photo: storePhotos,
  comment: storeComments,
  like: storeLikes,
  poll_participation: storeVotes,
  participation: storeParticipations,
  contact: storeContacts,
  conversation: storeConversations,
  message: storeMessages,
  retraction: storeRetractions,
  account_migration: storeAccountMigrations,
  account_deletion: storeAccountDeletions,
}

type Batch = StepResult<Arrival<StorableEntity>>

/** What a transaction made of a batch, beside what it was given. */
interface Ended {
  readonly records: readonly StoredRecord[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
}

/**
 * One transaction for the whole batch: what is ready is stored with all that must follow from it, what waits is parked, and the
 * rows of messages that waited before go. Whose row is gone has been taken in by somebody else.
 */
export async function storeBatch(pod: Pod, batch: Batch): Promise<Ended> {
  if (isNothingToDo(batch)) return { records: [], rejected: [], ignored: [] }
  const now = pod.now()
  return inTransaction(pod.db, async (transaction) => {
    const { ready, waiting, rejected } = await claimResumed(transaction, batch)
    const parked = waiting.filter(({ message }) => message.wanted === undefined)
    const alone = [...ready.flatMap(changedBy), ...parked.map(({ waitsFor }) => waitsFor)]
    await lockThings(transaction, alone, ready.flatMap(addedTo))
    await leaveTombstones(transaction, parked.flatMap(retractionIn))
    await provePeople(transaction, [...new Set(ready.flatMap(({ firstSigned = [] }) => firstSigned))])
    const { stored, counted } = await storeAll(pod, transaction, ready, now)
    const records = stored.flatMap((some) => some.records)
    await answerForClosed(pod, transaction, rejected)
    await waitAndWake(
      pod,
      transaction,
      parked.map(parkedAs),
      records.flatMap(({ arrival }) => thingsIn(arrival)),
      counted ? undefined : countsOf(records, now),
    )
    // Whose activity a comment moves is found once the post is held, which counting does.
    await followUp(pod, transaction, records, [...rejected, ...stored.flatMap((some) => some.rejected)])
    if (ready.some(({ signer }) => signer.offline)) await OtherPod.requestChecks(transaction, sendersOf(ready))
    return {
      records,
      rejected: stored.flatMap((some) => some.rejected),
      ignored: stored.flatMap((some) => some.ignored ?? []),
    }
  })
}

/** What is wrong may have to be answered, if it is known who sent it. */
function isNothingToDo(batch: Batch): boolean {
  const { ready, waiting, rejected } = batch
  return (
    ready.length + waiting.length + rowsOf(batch).length === 0 && rejected.every(({ arrival }) => arrival === undefined)
  )
}

function rowsOf({ ready, waiting, rejected, ignored }: Batch): readonly number[] {
  const all: readonly { readonly message: InboundMessage }[] = [...ready, ...waiting, ...rejected, ...ignored]
  return all.flatMap(({ message }) => message.resumed?.outboxId ?? [])
}

/** Without the messages that have been taken in meanwhile. */
async function claimResumed(transaction: Knex.Transaction, batch: Batch): Promise<Omit<Batch, 'ignored'>> {
  const taken = await takeRows(transaction, rowsOf(batch))
  const isStillHeld = ({ message: { resumed } }: { readonly message: InboundMessage }) =>
    resumed === undefined || taken.has(resumed.outboxId)
  return {
    ready: batch.ready.filter(isStillHeld),
    waiting: batch.waiting.filter(isStillHeld),
    rejected: batch.rejected.filter(isStillHeld),
  }
}

/**
 * Counters are raised at the end of the transaction, because whoever counts on the same posts waits from then on; but before
 * anything is taken away, which lowers them.
 */
async function storeAll(
  pod: Pod,
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<StorableEntity>[],
  now: Date,
): Promise<{ readonly stored: readonly StoreResult[]; readonly counted: boolean }> {
  const stored: StoreResult[] = []
  let counted = false
  for (const kind of Object.keys(kinds) as Kind[]) {
    const ofKind = arrivals.filter(({ entity }) => entity.type === kind)
    if (ofKind.length === 0) continue
    if (takingAway.has(kind) && !counted) {
      counted = true
      const records = stored.flatMap((some) => some.records)
      await raiseCounts(transaction, countsOf(records, now))
    }
    const store = kinds[kind] as Store<StorableEntity> // the table pairs each kind with its function
    stored.push(await store(transaction, ofKind, now, pod))
  }
  return { stored, counted }
}

/** Kinds that take away what was counted. */
const takingAway: ReadonlySet<Kind> = new Set(['retraction', 'account_migration', 'account_deletion'])

function parkedAs({ message, ...wait }: WaitingMessage): ParkedMessage {
  const { envelope, recipientGuid, acceptedAt, source, resumed } = message
  const senderHost = splitAddress(wait.sender)?.host
  return { ...wait, senderHost, source, payload: envelope, recipientGuid, acceptedAt, times: resumed?.times ?? 0 }
}

/** It waits for its target, and counts at once. */
function retractionIn({ arrival }: WaitingMessage): Arrival<RetractionEntity>[] {
  return arrival?.entity.type === 'retraction' ? [{ ...arrival, entity: arrival.entity }] : []
}

function sendersOf(arrivals: readonly Arrival[]): readonly string[] {
  return [...new Set(arrivals.map(({ signer }) => signer.address))]
}

/** What comes and what is taken back: nobody else may touch these meanwhile. */
function changedBy(arrival: Arrival<StorableEntity>): Thing[] {
  const { entity } = arrival
  const target = entity.type === 'retraction' ? targetThing(entity) : undefined
  return target === undefined ? lockedFor(arrival) : [...lockedFor(arrival), target]
}

/** What it stands under: others may add to that at the same time, but not take it away. */
function addedTo({ entity }: Arrival<StorableEntity>): Thing[] {
  return parentOf(entity).map(({ kind, guid }) => `${kind}:${guid}` as const)
}

/** Everything that somebody may wait for and that comes with this entity. */
function thingsIn(arrival: Arrival<StorableEntity>): Thing[] {
  const { entity } = arrival
  const photos = entity.type === 'status_message' ? entity.photos.map(({ guid }) => `photo:${guid}` as const) : []
  return [...lockedFor(arrival), ...photos]
}

/**
 * Photos of a post are not locked: a stranger may put a hundred into each post of a batch, and the server has some thousand
 * locks for everybody. Who waits for one and misses it, within moments of its arrival, gets it when their time is over.
 */
function lockedFor({ entity }: Arrival<StorableEntity>): Thing[] {
  switch (entity.type) {
    case 'status_message':
      return [`post:${entity.guid}`, ...(entity.poll === undefined ? [] : [`poll:${entity.poll.guid}` as const])]
    case 'reshare':
      return [`post:${entity.guid}`]
    case 'photo':
    case 'comment':
    case 'like':
    case 'poll_participation':
    case 'participation':
    case 'conversation':
    case 'message':
      return [`${entity.type}:${entity.guid}`]
    default:
      return [] // nobody waits for what only changes something
  }
}
