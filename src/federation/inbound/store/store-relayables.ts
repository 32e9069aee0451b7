import type { Knex } from 'knex'
import { readMentionedAddresses, readTagNames } from '../../../domain/posts/texts.js'
import { inChunks } from '../../../jobs/chunks.js'
import { dispatchRelaysJob } from '../../../jobs/definitions.js'
import { type NewJob, newJob } from '../../../jobs/outbox/enqueue-jobs.js'
import { insertParticipations } from '../../../persistence/inbound/insert-participations.js'
import {
  insertComments,
  insertLikes,
  insertVotes,
  type RelayableOutcome,
} from '../../../persistence/inbound/insert-relayables.js'
import { Mention } from '../../../persistence/models/mention.js'
import { Tag } from '../../../persistence/models/tag.js'
import type { EntityOfType, StoredRelayable } from '../../../protocol/entities/registry.js'
import { DELIVERY_LIMITS } from '../../outbound/limits.js'
import type { IgnoredMessage, RejectedMessage, StorableMessage, StoredRecord, StoreResult } from '../batch.js'
import { firstOfEachGuid } from './first-of-each-guid.js'
import { plausibleTime } from './plausible-time.js'

/** Stores comments with their tags and mentions. */
export async function storeComments(
  _services: unknown,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<EntityOfType<'comment'>>[],
  now: Date,
): Promise<StoreResult<EntityOfType<'comment'>>> {
  const { stored, outcomes } = await storeRelayables(messages, (firsts) =>
    insertComments(
      transaction,
      firsts.map((message) => {
        const { text, created_at: writtenAt } = message.entity
        const createdAt = plausibleTime(writtenAt, message.inbound.acceptedAt, now)
        return Object.assign(columnsOf(message), { text, createdAt })
      }),
    ),
  )
  const texts = stored.records.map(({ id, message: { entity } }) => {
    const threadPost = outcomes.get(entity.guid)?.threadPost
    return {
      commentId: id,
      text: entity.text,
      postedAt: threadPost?.createdAt ?? now,
      isPublic: threadPost?.isPublic ?? false,
    }
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
  _services: unknown,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<EntityOfType<'like'>>[],
): Promise<StoreResult<EntityOfType<'like'>>> {
  const { stored } = await storeRelayables(messages, (firsts) =>
    insertLikes(
      transaction,
      firsts.map((message) => {
        const { parent_type: parentType, positive } = message.entity
        return Object.assign(columnsOf(message), { parentType, positive, createdAt: message.inbound.acceptedAt })
      }),
    ),
  )
  return stored
}

/** Stores votes, one for each person and poll. */
export async function storeVotes(
  _services: unknown,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<EntityOfType<'poll_participation'>>[],
): Promise<StoreResult<EntityOfType<'poll_participation'>>> {
  const { stored } = await storeRelayables(messages, (firsts) =>
    insertVotes(
      transaction,
      firsts.map((message) => {
        const { poll_answer_guid: answer } = message.entity
        return Object.assign(columnsOf(message), { answer, createdAt: message.inbound.acceptedAt })
      }),
    ),
  )
  return stored
}

/** Stores the subscriptions of remote people to the interactions with a local post, one for each person and post. */
export async function storeParticipations(
  _services: unknown,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<EntityOfType<'participation'>>[],
): Promise<StoreResult<EntityOfType<'participation'>>> {
  const byGuid = firstOfEachGuid(messages)
  const insertedRows = await insertParticipations(
    transaction,
    [...byGuid.values()].map(({ entity: { guid, author, parent_guid: postGuid }, inbound }) => {
      return { guid, author, postGuid, createdAt: inbound.acceptedAt }
    }),
  )
  const records: StoredRecord<EntityOfType<'participation'>>[] = []
  const ignored: IgnoredMessage[] = []
  for (const { id, guid } of insertedRows) {
    const message = byGuid.get(guid)
    if (message === undefined) continue
    if (id !== null) records.push({ id, message })
    else
      ignored.push({
        inbound: message.inbound,
        message,
        reason: 'too many pods that have never responded participate in the post',
      })
  }
  return { records, rejected: [], ignored }
}

function columnsOf({ entity, isParentLocal, inbound: { trace } }: StorableMessage<StoredRelayable>) {
  const { guid, author, parent_guid: parent, author_signature: signature, elements } = entity
  return { guid, author, parent, trace, signed: isParentLocal ? { signature, elements } : undefined }
}

async function storeRelayables<Entity extends StoredRelayable>(
  messages: readonly StorableMessage<Entity>[],
  insert: (firsts: readonly StorableMessage<Entity>[]) => Promise<readonly RelayableOutcome[]>,
): Promise<{ readonly stored: StoreResult<Entity>; readonly outcomes: ReadonlyMap<string, RelayableOutcome> }> {
  const firsts = firstOfEachGuid(messages)
  const rows = await insert([...firsts.values()])
  const outcomes = new Map(rows.map((outcome) => [outcome.guid, outcome]))

  const records: StoredRecord<Entity>[] = []
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const message of messages) {
    const { inbound, entity } = message
    const first = firsts.get(entity.guid)
    const outcome = outcomes.get(entity.guid)
    if (first === undefined || outcome === undefined) throw new Error('A relayable has no outcome.')
    const isNew = message === first && outcome.existingAuthor === null
    const fault = faultOf(entity.author, outcome.existingAuthor ?? first.entity.author, outcome)
    if (fault !== undefined) rejected.push({ inbound, message, ...fault })
    else if (isNew && outcome.id !== null) records.push({ id: outcome.id, message })
    else if (isNew)
      ignored.push({
        inbound,
        message,
        reason: 'it was retracted, its parent is deleted, or its author has already liked or voted there',
      })
    // Every other message is a repeat without an effect.
  }
  return { stored: { records, rejected, ignored, relayJobs: relayJobsOf(records, outcomes) }, outcomes }
}

function faultOf(
  author: string,
  existingAuthor: string,
  { threadPost }: RelayableOutcome,
): Pick<RejectedMessage, 'fault' | 'reason'> | undefined {
  if (existingAuthor !== author)
    return { fault: 'InvalidAuthor', reason: `its guid belongs to an entity by ${existingAuthor}` }
  if (threadPost?.isAnswerUnknown) return { fault: 'ValidationError', reason: 'the poll has no such answer' }
  if (threadPost?.isAuthorBlocked) return { fault: 'AuthorIgnored', reason: `the author of the post ignores ${author}` }
  return undefined
}

/** Jobs that relay stored interactions with local posts to the other readers of each post. */
function relayJobsOf(
  records: readonly StoredRecord<StoredRelayable>[],
  outcomes: ReadonlyMap<string, RelayableOutcome>,
): readonly NewJob[] {
  const underLocalPosts = records.filter(({ message }) => outcomes.get(message.entity.guid)?.threadPost?.isLocal)
  const relays = underLocalPosts.map(({ message: { entity } }) => ({ record: entity.type, guid: entity.guid }))
  return inChunks(relays, DELIVERY_LIMITS.relaysPerBatch).map((batch) => newJob(dispatchRelaysJob, { relays: batch }))
}
