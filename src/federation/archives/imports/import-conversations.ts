import {
  findConversationParts,
  type ImportedConversation,
  insertImportedConversations,
} from '../../../persistence/archives/archived-conversations.js'
import type { ConversationEntity, MessageEntity } from '../../../protocol/entities/conversations.js'
import { entityFromJson } from '../../../protocol/entities/entity-json.js'
import { ProtocolError } from '../../../protocol/errors.js'
import type { FoundPerson } from '../lookups/people-finder.js'
import { isOwner } from '../owner.js'
import { readMembers } from '../reading/archive-owner.js'
import type { SpooledItem } from '../reading/spool-archive.js'
import { BatchResults, type ImportContext, type ListImporter, type ReadyItem } from './import-context.js'
import { readArchivedEntity } from './read-entity.js'

interface NamedConversation extends ReadyItem {
  readonly entity: ConversationEntity
  readonly messages: readonly MessageEntity[]
  readonly read: boolean
}

interface ReadyConversation extends ReadyItem {
  readonly conversation: ImportedConversation
}

/**
 * Conversations of the owner; only archives of this software have them. Messages of other people are only claims of the owner. So
 * no other user sees them, and nothing is sent.
 */
export const conversationImporter: ListImporter<ReadyConversation> = {
  section: 'conversations',
  list: 'conversations',

  async prepare(context, items) {
    const results = new BatchResults<ReadyConversation>('conversations')
    const named = items.flatMap((item) => readConversation(context, item, results))
    const { services, user } = context
    const known = await findConversationParts(
      services.db,
      user.personId,
      named.map(({ ref }) => ref),
    )
    const fresh = named.filter(({ ref }) => !known.has(ref))
    const authors = fresh.flatMap(({ entity, messages }) => [entity.author, ...messages.map(({ author }) => author)])
    const others = authors.filter((author) => !isOwner(context, author))
    const people = await context.people.find(others, context.signal)
    for (const item of named) {
      const isParticipant = known.get(item.ref)
      const conversation = isParticipant === undefined ? conversationOf(context, item, people) : undefined
      if (isParticipant === true) results.recordPresent(item)
      else if (isParticipant === false) results.refuse(item, 'guid_taken')
      else if (conversation === undefined) results.refuse(item, 'author_unknown')
      else results.accept({ position: item.position, ref: item.ref, conversation })
    }
    return results
  },

  async store({ user }, transaction, ready) {
    const results = new BatchResults<ReadyConversation>('conversations')
    const conversations = ready.map(({ conversation }) => conversation)
    const stored = await insertImportedConversations(transaction, user.personId, conversations)
    for (const item of ready) {
      if (stored.has(item.ref)) results.recordImported(item)
      else results.recordPresent(item)
    }
    return results.outcomes
  },
}

function readConversation(
  { services }: ImportContext,
  { position, value }: SpooledItem,
  results: BatchResults<ReadyConversation>,
): NamedConversation[] {
  const members = readMembers(value)
  const data = readMembers(members?.['entity_data'])
  // The messages are by several authors, which the entity itself does not allow.
  const read = readArchivedEntity({ ...members, entity_data: data && { ...data, messages: [] } }, services.now())
  if (!read.ok || read.entity.type !== 'conversation' || !Array.isArray(data?.['messages'])) {
    results.refuse({ position, ref: read.ref }, read.ok ? 'schema' : read.reason)
    return []
  }
  const messages = data['messages'].flatMap((message) => readMessage(message, services.now()) ?? [])
  return [{ position, ref: read.ref, entity: read.entity, messages, read: members?.['read'] !== false }]
}

/** A message that cannot be read is left out. */
function readMessage(value: unknown, now: Date): MessageEntity | undefined {
  try {
    const entity = entityFromJson(value, now)
    return entity.type === 'message' ? entity : undefined
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

/** Undefined: the author of the conversation is unknown. Messages of unknown authors are left out. */
function conversationOf(
  context: ImportContext,
  { entity, messages, read }: NamedConversation,
  people: ReadonlyMap<string, FoundPerson>,
): ImportedConversation | undefined {
  const idOf = (address: string) => {
    if (isOwner(context, address)) return context.user.personId
    const found = people.get(address)
    return found?.state === 'found' ? found.newest.id : undefined
  }
  const authorId = idOf(entity.author)
  if (authorId === undefined) return undefined
  const written = messages.flatMap(({ guid, author, text, created_at: createdAt }) => {
    const id = idOf(author)
    return id === undefined ? [] : [{ guid, authorId: id, text, createdAt }]
  })
  const participants = entity.participants.map((address) =>
    isOwner(context, address) ? context.user.address : address,
  )
  return {
    guid: entity.guid,
    authorId,
    subject: entity.subject,
    participants: [...new Set(participants)].sort(),
    createdAt: entity.created_at,
    updatedAt: written.reduce((latest, { createdAt }) => (createdAt > latest ? createdAt : latest), entity.created_at),
    read,
    messages: written,
  }
}
