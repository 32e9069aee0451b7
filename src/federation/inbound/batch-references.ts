import { findConversations } from '../../persistence/conversations/find-conversations.js'
import { findPostReferences } from '../../persistence/inbound/post-references.js'
import { findRetractionTargets } from '../../persistence/inbound/retraction-targets.js'
import { ENTITY_TYPES, isRelayable, type ReceivableEntity } from '../../protocol/entities/registry.js'
import type { References } from '../../protocol/envelopes/sender-rules.js'
import type { Services } from '../../services/services.js'
import {
  groupGuidsByKind,
  isInteraction,
  listConversationGuids,
  listParents,
  listParts,
  listRetractionTargets,
  type PartReference,
  receivingRulesOf,
  type ThreadPost,
} from './receiving-rules.js'

type Target = NonNullable<References['target']>
type Conversation = NonNullable<References['conversation']>

/** The stored entities that a batch refers to, and those that come with the batch. */
export interface BatchReferences {
  /** Posts, comments and polls by `kind guid`, each with the post it belongs to. */
  readonly threadPosts: Map<string, ThreadPost>
  /** Targets of retractions by `type guid`. */
  readonly targets: Map<string, Target>
  /** Conversations by guid. */
  readonly conversations: Map<string, Conversation>
  /** Guids of the reshares in this batch. One statement inserts them all, so none of them can reshare another. */
  readonly reshares: Set<string>
  /** Tombstones as `type guid address`, with the address of the person who deleted the entity. */
  readonly tombstones: ReadonlySet<string>
  /** Tombstones that local people have left, as `type guid`. */
  readonly localTombstones: ReadonlySet<string>
  /** Authors of photos and polls, stored or in this batch, by `type guid`. */
  readonly partAuthors: Map<string, string>
  /** False: the batch has no retraction, so none of its entities is looked up as a target. */
  readonly hasRetractions: boolean
}

/**
 * Finds the references of a batch with at most three statements: one for posts with their parts and tombstones, one for retraction targets,
 * one for conversations.
 */
export async function findBatchReferences(
  { db }: Pick<Services, 'db'>,
  entities: readonly ReceivableEntity[],
): Promise<BatchReferences> {
  const parts = entities.flatMap(listParts).map(({ guid }) => guid)
  const parents = entities.flatMap(listParents)
  const postReferences = await findPostReferences(db, {
    ...groupGuidsByKind(parents),
    parts,
    deleted: [...entities.flatMap(tombstoneGuidsOf), ...parts, ...parents.map(({ guid }) => guid)],
    authors: entities.flatMap((entity) => (isInteraction(entity) ? [entity.author] : [])),
  })
  const targets = await findRetractionTargets(db, entities.flatMap(listRetractionTargets))
  const conversations = await findConversations(db, entities.flatMap(listConversationGuids))
  return {
    threadPosts: new Map(
      postReferences.threadPosts.map((threadPost) => [`${threadPost.kind} ${threadPost.guid}`, threadPost]),
    ),
    targets: new Map(targets),
    conversations: new Map(conversations.map((conversation) => [conversation.guid, conversation])),
    reshares: new Set(),
    tombstones: new Set(postReferences.deleted.map(({ type, guid, by }) => `${type} ${guid} ${by}`)),
    localTombstones: new Set(
      postReferences.deleted.flatMap(({ type, guid, isLocal }) => (isLocal ? [`${type} ${guid}`] : [])),
    ),
    partAuthors: new Map(postReferences.parts.map(({ type, guid, author }) => [`${type} ${guid}`, author])),
    hasRetractions: entities.some(({ type }) => type === 'retraction'),
  }
}

function tombstoneGuidsOf(entity: ReceivableEntity): readonly string[] {
  if (entity.type === 'retraction') return [entity.target_guid]
  return 'guid' in entity ? [entity.guid] : []
}

/**
 * True for an interaction with a private local post that its author does not receive. For that author the parent counts as
 * unknown: any other reaction would reveal that the post exists.
 */
export function hasUnreadableParent(entity: ReceivableEntity, { threadPosts }: BatchReferences): boolean {
  if (!isInteraction(entity)) return false
  const [parent] = listParents(entity)
  const readers = parent && threadPosts.get(`${parent.kind} ${parent.guid}`)?.readers
  return Array.isArray(readers) && !readers.includes(entity.author)
}

/** The references of one entity; a missing one is undefined. */
export function findReferences(entity: ReceivableEntity, batch: BatchReferences): References {
  const { threadPosts, targets, conversations, reshares } = batch
  const [parent] = hasUnreadableParent(entity, batch)
    ? []
    : listParents(entity).filter(({ guid }) => entity.type !== 'reshare' || !reshares.has(guid))
  const [target] = listRetractionTargets(entity)
  const [conversation] = listConversationGuids(entity)
  return {
    threadPost: parent && threadPosts.get(`${parent.kind} ${parent.guid}`),
    target: target && targets.get(`${target.type} ${target.guid}`),
    conversation: conversation === undefined ? undefined : conversations.get(conversation),
  }
}

/**
 * Adds an entity of the batch, so that later entities of the same batch may refer to it: they are stored after it. A stored
 * entity with the same guid keeps its place.
 */
export function addEntityOfBatch(entity: ReceivableEntity, { threadPost }: References, batch: BatchReferences): void {
  const { threadPosts = [], conversation } = receivingRulesOf(entity).parentsIn?.(entity, threadPost) ?? {}
  for (const { kind, guid, threadPost } of threadPosts) setOnce(batch.threadPosts, `${kind} ${guid}`, threadPost)
  if (conversation !== undefined) setOnce(batch.conversations, conversation.guid, conversation)
  if (entity.type === 'reshare') batch.reshares.add(entity.guid)
  for (const { type, guid } of listParts(entity)) batch.partAuthors.set(`${type} ${guid}`, entity.author)
  if (batch.hasRetractions) addTargets(entity, threadPost, batch)
}

function addTargets(entity: ReceivableEntity, threadPost: ThreadPost | undefined, { targets }: BatchReferences): void {
  const target = { author: entity.author, threadPost: isRelayable(entity) ? threadPost : undefined }
  const ownKeys = 'guid' in entity ? [{ type: entity.type, guid: entity.guid }] : []
  for (const { type, guid } of [...ownKeys, ...listParts(entity)]) {
    for (const name of ENTITY_TYPES[type].retractedAs) setOnce(targets, `${name} ${guid}`, target)
  }
}

function setOnce<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (!map.has(key)) map.set(key, value)
}

/** True for a photo or poll of a post whose guid another author has already used. */
export function isPartOfOtherAuthor(
  { type, guid }: PartReference,
  author: string,
  { partAuthors }: BatchReferences,
): boolean {
  return (partAuthors.get(`${type} ${guid}`) ?? author) !== author
}
