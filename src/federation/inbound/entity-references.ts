import type { EntityKey } from '../../jobs/waiting/entity-key.js'
import type { ReferencedPart, ReferencedPost } from '../../persistence/inbound/post-references.js'
import type { DestructibleKind } from '../../persistence/posts/destroy-entities.js'
import type { ReceivableEntity } from '../../protocol/entities/registry.js'
import type { RetractionEntity, TargetType } from '../../protocol/entities/retraction.js'

/** The post, comment or poll that an entity belongs to or reshares. */
export type ParentReference = Pick<ReferencedPost, 'kind' | 'guid'>

/** A photo or a poll inside a post, which has a guid that is unique on this pod. Poll answers are unique only in their poll. */
export type PartReference = Pick<ReferencedPart, 'type' | 'guid'>

/** The parent of an entity: none or one. */
export function listParents(entity: ReceivableEntity): readonly ParentReference[] {
  switch (entity.type) {
    case 'comment':
    case 'participation':
      return [{ kind: 'post', guid: entity.parent_guid }]
    case 'like':
      return [{ kind: entity.parent_type === 'Post' ? 'post' : 'comment', guid: entity.parent_guid }]
    case 'poll_participation':
      return [{ kind: 'poll', guid: entity.parent_guid }]
    case 'reshare':
      return entity.root_guid === undefined ? [] : [{ kind: 'post', guid: entity.root_guid }]
    case 'status_message':
    case 'photo':
    case 'conversation':
    case 'message':
    case 'retraction':
    case 'profile':
    case 'contact':
    case 'account_deletion':
    case 'account_migration':
      return []
  }
}

/** The guids of parents by kind, as `findPostReferences` takes them. */
export function groupGuidsByKind(
  parents: readonly ParentReference[],
): Readonly<Record<`${ParentReference['kind']}s`, readonly string[]>> {
  const guidsOf = (kind: ParentReference['kind']) =>
    parents.filter((parent) => parent.kind === kind).map(({ guid }) => guid)
  return { posts: guidsOf('post'), comments: guidsOf('comment'), polls: guidsOf('poll') }
}

/** The target of a retraction: none or one. */
export function listRetractionTargets(
  entity: ReceivableEntity,
): readonly { readonly type: TargetType; readonly guid: string }[] {
  return entity.type === 'retraction' ? [{ type: entity.target_type, guid: entity.target_guid }] : []
}

/** The target of a retraction as locks and waiting messages name it; undefined: a person, for which no message waits. */
export function retractedKey({ target_type: type, target_guid: guid }: RetractionEntity): EntityKey | undefined {
  return type === 'Person' ? undefined : `${recordOfTargetType[type]}:${guid}`
}

/** Parents before children. Other pods may name a post by any of its three types. */
export const recordOfTargetType: { readonly [Type in Exclude<TargetType, 'Person'>]: DestructibleKind } = {
  Post: 'post',
  StatusMessage: 'post',
  Reshare: 'post',
  Photo: 'photo',
  Comment: 'comment',
  Like: 'like',
  PollParticipation: 'poll_participation',
  Participation: 'participation',
  Poll: 'poll',
  Conversation: 'conversation',
}

/** The target types that a retraction of an entity may name. */
export const targetTypesOf = {
  status_message: ['Post', 'StatusMessage', 'Reshare'],
  reshare: ['Post', 'StatusMessage', 'Reshare'],
  photo: ['Photo'],
  comment: ['Comment'],
  like: ['Like'],
  poll_participation: ['PollParticipation'],
  participation: ['Participation'],
  conversation: ['Conversation'],
} as const satisfies { readonly [Type in ReceivableEntity['type']]?: readonly TargetType[] }

/** The conversation of a message: none or one. */
export function listConversationGuids(entity: ReceivableEntity): readonly string[] {
  return entity.type === 'message' ? [entity.conversation_guid] : []
}

/** The photos and the poll of a post. */
export function listParts(entity: ReceivableEntity): readonly PartReference[] {
  if (entity.type !== 'status_message') return []
  const { photos, poll } = entity
  return [...photos, ...(poll === undefined ? [] : [poll])]
}

type Interaction = Extract<
  ReceivableEntity,
  { readonly type: 'comment' | 'like' | 'poll_participation' | 'participation' }
>

export function isInteraction(entity: ReceivableEntity): entity is Interaction {
  const { type } = entity
  return type === 'comment' || type === 'like' || type === 'poll_participation' || type === 'participation'
}
