import type { Knex } from 'knex'
import { addMessages } from '../../../domain/conversations/messages.js'
import { discoverMentionedJob } from '../../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../../jobs/outbox/outbox.js'
import { REFERENCE_LIMITS } from '../../../jobs/waiting/limits.js'
import { lockEntityKeys } from '../../../jobs/waiting/lock-entity-keys.js'
import {
  type ArrivedConversation,
  type ArrivedMessage,
  findAuthorsByGuid,
  findRefusedConversations,
  type InsertedRow,
  insertNewConversations,
} from '../../../persistence/inbound/insert-conversations.js'
import { Person } from '../../../persistence/models/person.js'
import type { Pod } from '../../../pod/pod.js'
import type { ConversationEntity, MessageEntity } from '../../../protocol/entities/conversations.js'
import { isRemoteAddress } from '../../discovery/pod-location.js'
import type { Arrival, IgnoredMessage, RejectedMessage, StoredRecord, StoreResult } from '../batch.js'
import { plausibleTime } from './plausible-time.js'

/** Stores conversations with their first messages, and enqueues lookups of unknown participants. */
export async function storeConversations(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<ConversationEntity>[],
  now: Date,
  pod: Pod,
): Promise<StoreResult<ConversationEntity>> {
  const authors = await findAuthorsByGuid(transaction, 'conversations', arrivals.map(guidOf))
  const first = firstOfEach(arrivals.filter(({ entity }) => !authors.has(entity.guid)))
  const refusedConversations = await findRefusedConversations(
    transaction,
    [...first.values()].map(({ entity }) => entity),
  )
  const allowed = [...first.values()].filter(({ entity }) => !refusedConversations.has(entity.guid))
  const unknownPeople = await enqueueParticipantLookups(pod, transaction, allowed)
  const rows = allowed.map((arrival) => conversationOf(arrival, unknownPeople, now))
  const records = recordsOf(first, await insertNewConversations(transaction, rows))
  await addMessages(
    pod,
    transaction,
    records.flatMap(({ arrival }) => messagesOf(arrival.entity).map((entity) => messageOf(arrival, entity, now))),
  )
  const refused = arrivals.filter(({ entity }) => refusedConversations.has(entity.guid)).map(notAllowed)
  const rest = without(arrivals, [...records, ...refused])
  const { ignored, rejected } = await sortNotInserted(transaction, 'conversations', rest)
  return { records, ignored, rejected: [...rejected, ...refused] }
}

/** Stores messages of known conversations. */
export async function storeMessages(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<MessageEntity>[],
  now: Date,
  pod: Pod,
): Promise<StoreResult<MessageEntity>> {
  const first = firstOfEach(arrivals)
  const rows = [...first.values()].map((arrival) => messageOf(arrival, arrival.entity, now))
  const records = recordsOf(first, await addMessages(pod, transaction, rows))
  const { ignored, rejected } = await sortNotInserted(transaction, 'messages', without(arrivals, records))
  return { records, ignored, rejected }
}

type ConversationPart = ConversationEntity | MessageEntity

/**
 * Returns the unknown participants. Their locks are held until the commit: a concurrent discovery would else add the person
 * without adding them to these conversations.
 */
async function enqueueParticipantLookups(
  pod: Pod,
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<ConversationEntity>[],
): Promise<ReadonlySet<string>> {
  const named = arrivals.flatMap(({ entity }) => entity.participants)
  const unknown = firstUnknown(
    arrivals,
    new Set((await withoutKnown(transaction, named)).filter((address) => isRemoteAddress(pod, address))),
  )
  if (unknown.length === 0) return new Set()
  await lockEntityKeys(
    transaction,
    unknown.map((address) => `person:${address}` as const),
  )
  const stillUnknown = new Set(await withoutKnown(transaction, unknown))
  const jobs = [...stillUnknown].map((address) => ({ address }))
  await enqueueJobsOfKind(pod, transaction, discoverMentionedJob, jobs)
  return stillUnknown
}

/** The first unknown participants of each conversation; the others are neither looked up nor stored. */
function firstUnknown(
  arrivals: readonly Arrival<ConversationEntity>[],
  unknown: ReadonlySet<string>,
): readonly string[] {
  const first = arrivals.flatMap(({ entity }) =>
    entity.participants.filter((address) => unknown.has(address)).slice(0, REFERENCE_LIMITS.unknownPeopleOfText),
  )
  return [...new Set(first)]
}

async function withoutKnown(transaction: Knex.Transaction, addresses: readonly string[]): Promise<readonly string[]> {
  if (addresses.length === 0) return []
  const people = await Person.byAddresses(transaction, [...new Set(addresses)]).select('address')
  const knownAddresses = new Set(people.map(({ address }) => address))
  return [...new Set(addresses)].filter((address) => !knownAddresses.has(address))
}

function conversationOf(
  { entity, message }: Arrival<ConversationEntity>,
  unknownPeople: ReadonlySet<string>,
  now: Date,
): ArrivedConversation {
  const participants = [...new Set(entity.participants)]
  return {
    guid: entity.guid,
    author: entity.author,
    subject: entity.subject,
    participants,
    unknownParticipants: participants
      .filter((address) => unknownPeople.has(address))
      .slice(0, REFERENCE_LIMITS.unknownPeopleOfText),
    createdAt: plausibleTime(entity.created_at, message.acceptedAt, now),
    arrivedAt: now,
  }
}

/** Oldest first; messages of the same second in their order in the entity. */
function messagesOf({ messages }: ConversationEntity): readonly MessageEntity[] {
  return messages.toSorted((one, other) => one.created_at.getTime() - other.created_at.getTime())
}

/** A message inside a conversation belongs to that conversation, even if it names another guid. */
function messageOf(
  { entity: container, message }: Arrival<ConversationPart>,
  entity: MessageEntity,
  now: Date,
): ArrivedMessage {
  return {
    guid: entity.guid,
    conversationGuid: container.type === 'conversation' ? container.guid : entity.conversation_guid,
    author: entity.author,
    text: entity.text,
    createdAt: plausibleTime(entity.created_at, message.acceptedAt, now),
    arrivedAt: now,
  }
}

function firstOfEach<Entity extends ConversationPart>(
  arrivals: readonly Arrival<Entity>[],
): ReadonlyMap<string, Arrival<Entity>> {
  return new Map(arrivals.toReversed().map((arrival) => [arrival.entity.guid, arrival]))
}

function recordsOf<Entity extends ConversationPart>(
  arrivals: ReadonlyMap<string, Arrival<Entity>>,
  rows: readonly InsertedRow[],
): readonly StoredRecord<Entity>[] {
  return rows.flatMap(({ id, guid }) => {
    const arrival = arrivals.get(guid)
    return arrival === undefined ? [] : [{ id, arrival }]
  })
}

function without<Entity extends ConversationPart>(
  arrivals: readonly Arrival<Entity>[],
  done: readonly { readonly arrival?: Arrival }[],
): readonly Arrival<Entity>[] {
  const messages = new Set(done.map(({ arrival }) => arrival?.message))
  return arrivals.filter(({ message }) => !messages.has(message))
}

/** Sorts what was not inserted: repeats, guids of other authors, and messages of conversations that were not stored. */
async function sortNotInserted(
  transaction: Knex.Transaction,
  table: 'conversations' | 'messages',
  arrivals: readonly Arrival<ConversationPart>[],
): Promise<{ readonly ignored: readonly IgnoredMessage[]; readonly rejected: readonly RejectedMessage[] }> {
  const authors = await findAuthorsByGuid(transaction, table, arrivals.map(guidOf))
  const ignored: IgnoredMessage[] = []
  const rejected: RejectedMessage[] = []
  for (const arrival of arrivals) {
    const { message, entity } = arrival
    const author = authors.get(entity.guid)
    if (author === entity.author) ignored.push({ message, arrival, reason: `${entity.guid} is stored already` })
    else if (author !== undefined) {
      rejected.push({ message, arrival, fault: 'InvalidAuthor', reason: `its guid belongs to an entity by ${author}` })
    } else if (entity.type === 'conversation') {
      ignored.push({ message, arrival, reason: 'it was retracted, or its author has closed the account' })
    } else {
      rejected.push({ message, arrival, fault: 'ConversationNotFound', reason: 'its conversation was not stored' })
    }
  }
  return { ignored, rejected }
}

function notAllowed(arrival: Arrival<ConversationEntity>): RejectedMessage & { readonly arrival: Arrival } {
  const { message, entity } = arrival
  const reason = `a local participant has no contact with ${entity.author}, or blocks them`
  return { message, arrival, fault: 'NotAllowed', reason }
}

function guidOf({ entity }: Arrival<ConversationPart>): string {
  return entity.guid
}
