import type { Knex } from 'knex'
import { addConversationMessages } from '../../../domain/conversations/add-conversation-messages.js'
import { discoverMentionedJob } from '../../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../../jobs/outbox/enqueue-jobs.js'
import { REFERENCE_LIMITS } from '../../../jobs/waiting/limits.js'
import { lockEntityKeys } from '../../../jobs/waiting/lock-entity-keys.js'
import {
  findAuthorsByGuid,
  findRefusedConversations,
  type InsertedRow,
  insertNewConversations,
  type NewConversationMessage,
  type ReceivedConversation,
} from '../../../persistence/inbound/insert-conversations.js'
import { Person } from '../../../persistence/models/person.js'
import type { ConversationEntity, MessageEntity } from '../../../protocol/entities/conversations.js'
import type { Services } from '../../../services/services.js'
import { isRemoteAddress } from '../../discovery/pod-location.js'
import type {
  IgnoredMessage,
  InboundMessage,
  RejectedMessage,
  StorableMessage,
  StoredRecord,
  StoreResult,
  VerifiedMessage,
} from '../batch.js'
import { firstOfEachGuid } from './first-of-each-guid.js'
import { plausibleTime } from './plausible-time.js'

/** Stores conversations with their first messages, and enqueues lookups of unknown participants. */
export async function storeConversations(
  services: Services,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<ConversationEntity>[],
  now: Date,
): Promise<StoreResult<ConversationEntity>> {
  const authors = await findAuthorsByGuid(transaction, 'conversations', messages.map(guidOf))
  const first = firstOfEachGuid(messages.filter(({ entity }) => !authors.has(entity.guid)))
  const refusedConversations = await findRefusedConversations(
    transaction,
    [...first.values()].map(({ entity }) => entity),
  )
  const allowedMessages = [...first.values()].filter(({ entity }) => !refusedConversations.has(entity.guid))
  const unknownPeople = await enqueueParticipantLookups(services, transaction, allowedMessages)
  const rows = allowedMessages.map((message) => conversationOf(message, unknownPeople, now))
  const records = recordsOf(first, await insertNewConversations(transaction, rows))
  await addConversationMessages(
    services,
    transaction,
    records.flatMap(({ message }) =>
      messageEntitiesOf(message.entity).map((entity) => toConversationMessage(message, entity, now)),
    ),
  )
  const refusedMessages = messages.filter(({ entity }) => refusedConversations.has(entity.guid)).map(notAllowed)
  const remainingMessages = excludeMessages(messages, [
    ...inboundOf(records),
    ...refusedMessages.map(({ inbound }) => inbound),
  ])
  const { ignored, rejected } = await sortNotInserted(transaction, 'conversations', remainingMessages)
  return { records, ignored, rejected: [...rejected, ...refusedMessages] }
}

/** Stores messages of known conversations. */
export async function storeConversationMessages(
  services: Services,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<MessageEntity>[],
  now: Date,
): Promise<StoreResult<MessageEntity>> {
  const first = firstOfEachGuid(messages)
  const rows = [...first.values()].map((message) => toConversationMessage(message, message.entity, now))
  const records = recordsOf(first, await addConversationMessages(services, transaction, rows))
  const { ignored, rejected } = await sortNotInserted(
    transaction,
    'messages',
    excludeMessages(messages, inboundOf(records)),
  )
  return { records, ignored, rejected }
}

type ConversationPart = ConversationEntity | MessageEntity

/**
 * Returns the unknown participants. Their locks are held until the commit: a concurrent discovery would else add the person
 * without adding them to these conversations.
 */
async function enqueueParticipantLookups(
  services: Services,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<ConversationEntity>[],
): Promise<ReadonlySet<string>> {
  const participants = messages.flatMap(({ entity }) => entity.participants)
  const unknown = firstUnknown(
    messages,
    new Set((await withoutKnown(transaction, participants)).filter((address) => isRemoteAddress(services, address))),
  )
  if (unknown.length === 0) return new Set()
  await lockEntityKeys(
    transaction,
    unknown.map((address) => `person:${address}` as const),
  )
  const stillUnknown = new Set(await withoutKnown(transaction, unknown))
  const jobs = [...stillUnknown].map((address) => ({ address }))
  await enqueueJobsOfKind(services, transaction, discoverMentionedJob, jobs)
  return stillUnknown
}

/** The first unknown participants of each conversation; the others are neither looked up nor stored. */
function firstUnknown(
  messages: readonly StorableMessage<ConversationEntity>[],
  unknown: ReadonlySet<string>,
): readonly string[] {
  const first = messages.flatMap(({ entity }) =>
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
  { entity, inbound }: StorableMessage<ConversationEntity>,
  unknownPeople: ReadonlySet<string>,
  now: Date,
): ReceivedConversation {
  const participants = [...new Set(entity.participants)]
  return {
    guid: entity.guid,
    author: entity.author,
    subject: entity.subject,
    participants,
    unknownParticipants: participants
      .filter((address) => unknownPeople.has(address))
      .slice(0, REFERENCE_LIMITS.unknownPeopleOfText),
    createdAt: plausibleTime(entity.created_at, inbound.acceptedAt, now),
    arrivedAt: now,
  }
}

/** Oldest first; messages of the same second in their order in the entity. */
function messageEntitiesOf({ messages }: ConversationEntity): readonly MessageEntity[] {
  return messages.toSorted((one, other) => one.created_at.getTime() - other.created_at.getTime())
}

/** A message inside a conversation belongs to that conversation, even if it names another guid. */
function toConversationMessage(
  { entity: container, inbound }: StorableMessage<ConversationPart>,
  entity: MessageEntity,
  now: Date,
): NewConversationMessage {
  return {
    guid: entity.guid,
    conversationGuid: container.type === 'conversation' ? container.guid : entity.conversation_guid,
    author: entity.author,
    text: entity.text,
    createdAt: plausibleTime(entity.created_at, inbound.acceptedAt, now),
    arrivedAt: now,
  }
}

function recordsOf<Entity extends ConversationPart>(
  messages: ReadonlyMap<string, StorableMessage<Entity>>,
  rows: readonly InsertedRow[],
): readonly StoredRecord<Entity>[] {
  return rows.flatMap(({ id, guid }) => {
    const message = messages.get(guid)
    return message === undefined ? [] : [{ id, message }]
  })
}

function inboundOf(records: readonly StoredRecord[]): readonly InboundMessage[] {
  return records.map(({ message }) => message.inbound)
}

function excludeMessages<Entity extends ConversationPart>(
  messages: readonly StorableMessage<Entity>[],
  done: readonly InboundMessage[],
): readonly StorableMessage<Entity>[] {
  const inboundDone = new Set(done)
  return messages.filter(({ inbound }) => !inboundDone.has(inbound))
}

/** Sorts the messages that were not inserted: repeats, guids of other authors, and messages of conversations that were not stored. */
async function sortNotInserted(
  transaction: Knex.Transaction,
  table: 'conversations' | 'messages',
  messages: readonly StorableMessage<ConversationPart>[],
): Promise<{ readonly ignored: readonly IgnoredMessage[]; readonly rejected: readonly RejectedMessage[] }> {
  const authors = await findAuthorsByGuid(transaction, table, messages.map(guidOf))
  const ignored: IgnoredMessage[] = []
  const rejected: RejectedMessage[] = []
  for (const message of messages) {
    const { inbound, entity } = message
    const author = authors.get(entity.guid)
    if (author === entity.author) ignored.push({ inbound, message, reason: `${entity.guid} is stored already` })
    else if (author !== undefined) {
      rejected.push({
        inbound,
        message,
        fault: 'InvalidAuthor',
        reason: `its guid belongs to an entity by ${author}`,
      })
    } else if (entity.type === 'conversation') {
      ignored.push({ inbound, message, reason: 'it was retracted, or its author has closed the account' })
    } else {
      rejected.push({
        inbound,
        message,
        fault: 'ConversationNotFound',
        reason: 'its conversation was not stored',
      })
    }
  }
  return { ignored, rejected }
}

function notAllowed(
  message: VerifiedMessage<ConversationEntity>,
): RejectedMessage & { readonly message: VerifiedMessage } {
  const { inbound, entity } = message
  const reason = `a local participant has no contact with ${entity.author}, or blocks them`
  return { inbound, message, fault: 'NotAllowed', reason }
}

function guidOf({ entity }: StorableMessage<ConversationPart>): string {
  return entity.guid
}
