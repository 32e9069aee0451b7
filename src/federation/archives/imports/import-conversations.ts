import {
  type ComparableConversation,
  findConversationParts,
  findSameConversations,
  type ImportedConversation,
  insertImportedConversations,
  joinImportedConversations,
  lockConversations,
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
  /** For the comparison with a copy of another account. */
  readonly comparable: ComparableConversation
}

/**
 * Conversations of the owner; only archives of this software have them. Messages of other people are only claims of the owner. So
 * no other user sees them, except one whose archive claims the same, and nothing is sent.
 */
export const conversationImporter: ListImporter<ReadyConversation> = {
  section: 'conversations',
  list: 'conversations',

  async prepare(context, items) {
    const results = new BatchResults<ReadyConversation>('conversations')
    const readableItems = items.flatMap((item) => readConversation(context, item, results))
    const { services, user } = context
    // Before the move, the old account takes part in the conversations that this pod knows.
    const parts = await findConversationParts(
      services.db,
      [user.personId, ...(context.oldPersonId === undefined ? [] : [context.oldPersonId])],
      readableItems.map(({ ref }) => ref),
    )
    const others = readableItems.filter(({ ref }) => parts.get(ref) !== true)
    const people = await context.people.find(
      others.flatMap((item) => peopleOf(item, parts)).filter((address) => !isOwner(context, address)),
      context.signal,
    )
    const known: ReadyConversation[] = []
    for (const item of readableItems) {
      const { position, ref } = item
      const conversation = conversationOf(context, item, people)
      const takesPart = parts.get(ref)
      if (takesPart === true) results.recordPresent(item)
      else if (conversation === undefined) results.refuse(item, takesPart === false ? 'guid_taken' : 'author_unknown')
      else {
        const ready = { position, ref, conversation, comparable: comparableOf(context, item, conversation, people) }
        if (takesPart === undefined) results.accept(ready)
        else known.push(ready)
      }
    }
    const same = await findSameConversations(services.db, known.map(comparableIn))
    for (const item of known) {
      if (same.has(item.ref)) results.accept(item)
      else results.refuse(item, 'guid_taken')
    }
    return results
  },

  async store({ user: { personId } }, transaction, items) {
    const results = new BatchResults<ReadyConversation>('conversations')
    const ready = [...new Map(items.toReversed().map((item) => [item.ref, item])).values()] // an archive may name one twice
    const insertedRefs = await insertImportedConversations(transaction, personId, ready.map(conversationIn))
    // The others exist: another account has imported its own copy before, or at this moment.
    const known = ready.filter(({ ref }) => !insertedRefs.has(ref))
    const guids = known.map(({ ref }) => ref)
    await lockConversations(transaction, guids)
    const parts = await findConversationParts(transaction, [personId], guids)
    const same = await findSameConversations(transaction, known.map(comparableIn))
    const joinedConversations = known.filter(({ ref }) => parts.get(ref) === false && same.has(ref))
    await joinImportedConversations(transaction, personId, joinedConversations.map(conversationIn))
    for (const item of items) {
      const isNew = insertedRefs.has(item.ref) || joinedConversations.some(({ ref }) => ref === item.ref)
      if (isNew && ready.includes(item)) results.recordImported(item)
      else if (isNew || parts.get(item.ref) === true) results.recordPresent(item)
      else results.refuse(item, 'guid_taken')
    }
    return results.outcomes
  },
}

const conversationIn = ({ conversation }: ReadyConversation): ImportedConversation => conversation
const comparableIn = ({ comparable }: ReadyConversation): ComparableConversation => comparable

/** The people who must be found for a conversation: its authors; if it is known, also its participants, which are compared. */
function peopleOf(
  { ref, entity, messages }: NamedConversation,
  parts: ReadonlyMap<string, boolean>,
): readonly string[] {
  const participants = parts.has(ref) ? entity.participants : []
  return [entity.author, ...messages.map(({ author }) => author), ...participants]
}

function comparableOf(
  context: ImportContext,
  { ref, entity }: NamedConversation,
  { messages }: ImportedConversation,
  people: ReadonlyMap<string, FoundPerson>,
): ComparableConversation {
  const { user, oldAddress, oldPersonId, earlierAddresses = [] } = context
  const participants = entity.participants.flatMap((address) => {
    const lookup = people.get(address)
    return lookup?.state === 'found' ? [lookup.person.id, lookup.newest.id] : []
  })
  return {
    guid: ref,
    names: [user.address, oldAddress, ...earlierAddresses],
    participantIds: participants,
    messages: messages.map(({ guid, text, authorId }) => ({
      guid,
      text,
      // A check comes before the move.
      authorIds: authorId === user.personId && oldPersonId !== undefined ? [authorId, oldPersonId] : [authorId],
    })),
  }
}

function readConversation(
  { services }: ImportContext,
  { position, value }: SpooledItem,
  results: BatchResults<ReadyConversation>,
): NamedConversation[] {
  const members = readMembers(value)
  const entityData = readMembers(members?.['entity_data'])
  // The messages are by several authors, which the entity itself does not allow.
  const read = readArchivedEntity(
    { ...members, entity_data: entityData && { ...entityData, messages: [] } },
    services.now(),
  )
  if (!read.ok || read.entity.type !== 'conversation' || !Array.isArray(entityData?.['messages'])) {
    results.refuse({ position, ref: read.ref }, read.ok ? 'schema' : read.reason)
    return []
  }
  const messages = entityData['messages'].flatMap((message) => readMessage(message, services.now()) ?? [])
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
    const lookup = people.get(address)
    return lookup?.state === 'found' ? lookup.newest.id : undefined
  }
  const authorId = idOf(entity.author)
  if (authorId === undefined) return undefined
  const messageRows = messages.flatMap(({ guid, author, text, created_at: createdAt }) => {
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
    updatedAt: messageRows.reduce(
      (latest, { createdAt }) => (createdAt > latest ? createdAt : latest),
      entity.created_at,
    ),
    read,
    messages: messageRows,
  }
}
