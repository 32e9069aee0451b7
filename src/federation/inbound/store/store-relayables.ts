import type { Knex } from 'knex'
import { readMentionedAddresses, readTagNames } from '../../../domain/posts/texts.js'
import { dispatchRelaysJob } from '../../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../../jobs/outbox/outbox.js'
import { insertParticipations } from '../../../persistence/inbound/insert-participations.js'
import {
  insertComments,
  insertLikes,
  insertVotes,
  type RelayableOutcome,
} from '../../../persistence/inbound/insert-relayables.js'
import { Mention } from '../../../persistence/models/mention.js'
import { Tag } from '../../../persistence/models/tag.js'
import type { Pod } from '../../../pod/pod.js'
import type { ReceivableEntity, StoredRelayable } from '../../../protocol/entities/registry.js'
import { DELIVERY_LIMITS } from '../../outbound/limits.js'
import type { Arrival, IgnoredMessage, RejectedMessage, StoredRecord, StoreResult } from '../batch.js'
import { plausibleTime } from './plausible-time.js'

type OfType<Type extends ReceivableEntity['type']> = Extract<ReceivableEntity, { readonly type: Type }>

/** Stores comments with their tags and mentions. */
export async function storeComments(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<OfType<'comment'>>[],
  now: Date,
  pod: Pick<Pod, 'jobs'>,
): Promise<StoreResult<OfType<'comment'>>> {
  const { stored, outcomes } = await storeRelayables(pod, transaction, arrivals, (firsts) =>
    insertComments(
      transaction,
      firsts.map((arrival) => {
        const { text, created_at: writtenAt } = arrival.entity
        const createdAt = plausibleTime(writtenAt, arrival.message.acceptedAt, now)
        return Object.assign(columnsOf(arrival), { text, createdAt })
      }),
    ),
  )
  const texts = stored.records.map(({ id, arrival: { entity } }) => {
    const root = outcomes.get(entity.guid)?.root
    return { commentId: id, text: entity.text, postedAt: root?.createdAt ?? now, isPublic: root?.public ?? false }
  })
  await Tag.attachToAll(
    transaction,
    texts.map(({ commentId, text, postedAt, isPublic }) => {
      return { commentId, createdAt: new Date(postedAt), isPublic, names: readTagNames(text) }
    }),
  )
  await Mention.attachToAll(
    transaction,
    texts.map(({ commentId, text }) => {
      return { commentId, addresses: readMentionedAddresses(text) }
    }),
  )
  return stored
}

/** Stores likes of posts and comments, one for each person and parent. */
export async function storeLikes(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<OfType<'like'>>[],
  _now: Date,
  pod: Pick<Pod, 'jobs'>,
): Promise<StoreResult<OfType<'like'>>> {
  const { stored } = await storeRelayables(pod, transaction, arrivals, (firsts) =>
    insertLikes(
      transaction,
      firsts.map((arrival) => {
        const { parent_type: parentType, positive } = arrival.entity
        return Object.assign(columnsOf(arrival), { parentType, positive, createdAt: arrival.message.acceptedAt })
      }),
    ),
  )
  return stored
}

/** Stores votes, one for each person and poll. */
export async function storeVotes(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<OfType<'poll_participation'>>[],
  _now: Date,
  pod: Pick<Pod, 'jobs'>,
): Promise<StoreResult<OfType<'poll_participation'>>> {
  const { stored } = await storeRelayables(pod, transaction, arrivals, (firsts) =>
    insertVotes(
      transaction,
      firsts.map((arrival) => {
        const { poll_answer_guid: answer } = arrival.entity
        return Object.assign(columnsOf(arrival), { answer, createdAt: arrival.message.acceptedAt })
      }),
    ),
  )
  return stored
}

/** Stores the subscriptions of remote people to the interactions with a local post, one for each person and post. */
export async function storeParticipations(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<OfType<'participation'>>[],
): Promise<StoreResult<OfType<'participation'>>> {
  const byGuid = firstOfEachGuid(arrivals)
  const inserted = await insertParticipations(
    transaction,
    [...byGuid.values()].map(({ entity: { guid, author, parent_guid: postGuid }, message }) => {
      return { guid, author, postGuid, createdAt: message.acceptedAt }
    }),
  )
  const records: StoredRecord<OfType<'participation'>>[] = []
  const ignored: IgnoredMessage[] = []
  for (const { id, guid } of inserted) {
    const arrival = byGuid.get(guid)
    if (arrival === undefined) continue
    if (id !== null) records.push({ id, arrival })
    else
      ignored.push({
        message: arrival.message,
        arrival,
        reason: 'too many pods that have never responded participate in the post',
      })
  }
  return { records, rejected: [], ignored }
}

function columnsOf({ entity, isParentLocal, message: { trace } }: Arrival<StoredRelayable>) {
  const { guid, author, parent_guid: parent, author_signature: signature, elements } = entity
  return { guid, author, parent, trace, signed: isParentLocal ? { signature, elements } : undefined }
}

/** The first arrival of each guid. */
function firstOfEachGuid<Entity extends ReceivableEntity & { readonly guid: string }>(
  arrivals: readonly Arrival<Entity>[],
): ReadonlyMap<string, Arrival<Entity>> {
  return new Map(arrivals.toReversed().map((arrival) => [arrival.entity.guid, arrival]))
}

async function storeRelayables<Entity extends StoredRelayable>(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<Entity>[],
  insert: (firsts: readonly Arrival<Entity>[]) => Promise<readonly RelayableOutcome[]>,
): Promise<{ readonly stored: StoreResult<Entity>; readonly outcomes: ReadonlyMap<string, RelayableOutcome> }> {
  const firsts = firstOfEachGuid(arrivals)
  const rows = await insert([...firsts.values()])
  const outcomes = new Map(rows.map((outcome) => [outcome.guid, outcome]))

  const records: StoredRecord<Entity>[] = []
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const arrival of arrivals) {
    const { message, entity } = arrival
    const first = firsts.get(entity.guid)
    const outcome = outcomes.get(entity.guid)
    if (first === undefined || outcome === undefined) throw new Error('A relayable has no outcome.')
    const isNew = arrival === first && outcome.existingAuthor === null
    const fault = faultOf(entity.author, outcome.existingAuthor ?? first.entity.author, outcome)
    if (fault !== undefined) rejected.push({ message, arrival, ...fault })
    else if (isNew && outcome.id !== null) records.push({ id: outcome.id, arrival })
    else if (isNew)
      ignored.push({
        message,
        arrival,
        reason: 'it was retracted, or its parent is deleted or has one by its author already',
      })
    // Every other arrival is a repeat without an effect.
  }
  await enqueueRelays(pod, transaction, records, outcomes)
  return { stored: { records, rejected, ignored }, outcomes }
}

function faultOf(
  author: string,
  existingAuthor: string,
  { root }: RelayableOutcome,
): Pick<RejectedMessage, 'fault' | 'reason'> | undefined {
  if (existingAuthor !== author)
    return { fault: 'InvalidAuthor', reason: `its guid belongs to an entity by ${existingAuthor}` }
  if (root?.misses) return { fault: 'ValidationError', reason: 'the poll has no such answer' }
  if (root?.ignores) return { fault: 'AuthorIgnored', reason: `the author of the post ignores ${author}` }
  return undefined
}

/** Enqueues relays of stored interactions with local posts to the other readers of each post. */
async function enqueueRelays(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  records: readonly StoredRecord<StoredRelayable>[],
  outcomes: ReadonlyMap<string, RelayableOutcome>,
): Promise<void> {
  const underLocalPosts = records.filter(({ arrival }) => outcomes.get(arrival.entity.guid)?.root?.local)
  const relays = underLocalPosts.map(({ arrival: { entity } }) => ({ record: entity.type, guid: entity.guid }))
  const batches: { relays: typeof relays }[] = []
  for (let start = 0; start < relays.length; start += DELIVERY_LIMITS.relaysAtOnce) {
    batches.push({ relays: relays.slice(start, start + DELIVERY_LIMITS.relaysAtOnce) })
  }
  await enqueueJobsOfKind(pod, transaction, dispatchRelaysJob, batches)
}
