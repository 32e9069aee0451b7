import {
  commentDocument,
  type FilterDocument,
  messageDocument,
  postDocument,
  profileDocument,
} from '../../domain/moderation/filters/filter-document.js'
import type { NotificationCauses } from '../../domain/notifications/notifications.js'
import { readMentionedAddresses } from '../../domain/posts/texts.js'
import type { EntityKey } from '../../jobs/waiting/entity-key.js'
import type { ReferencedPart, ReferencedPost } from '../../persistence/inbound/post-references.js'
import type { TextIds } from '../../persistence/models/mention.js'
import type { ConversationEntity } from '../../protocol/entities/conversations.js'
import {
  ENTITY_TYPES,
  type EntityOfType,
  RETRACTED_RECORDS,
  type ReceivableEntity,
} from '../../protocol/entities/registry.js'
import type { TargetType } from '../../protocol/entities/retraction.js'
import type { References } from '../../protocol/envelopes/sender-rules.js'
import { readTags } from '../../protocol/mentions.js'

/** The post, comment or poll that an entity belongs to or reshares. */
export type ParentReference = Pick<ReferencedPost, 'kind' | 'guid'>

/** The stored entity that a received one refers to, and cannot be stored without. */
type Reference =
  /** `author` is the person whose pod has the parent; undefined: the author of the entity has it too. */
  | { readonly parent: ParentReference; readonly author?: string | undefined }
  | { readonly target: RetractionTarget }
  | { readonly conversation: string }

interface RetractionTarget {
  readonly type: TargetType
  readonly guid: string
}

/** A photo or a poll inside a post, which has a guid that is unique on this pod. Poll answers are unique only in their poll. */
export type PartReference = Pick<ReferencedPart, 'type' | 'guid'>

/** The post above a parent, with the authors who receive it if it is private. */
export type ThreadPost = NonNullable<References['threadPost']> & Partial<Pick<ReferencedPost, 'readers'>>

/** Records to which later entities of a batch may refer. */
interface ParentsOfOthers {
  readonly threadPosts?: readonly (ParentReference & { readonly threadPost: ThreadPost })[]
  readonly conversation?: ConversationEntity
}

interface MentioningText {
  readonly text: string
  readonly kind: keyof TextIds
}

interface NotificationContext {
  readonly isParentLocal: boolean
  isLocalAddress(address: string | undefined): boolean
}

/** Rules for received entities of one type. The entities are stored by the functions of `store/store-entities.ts`. */
interface ReceivingRules<Entity extends ReceivableEntity> {
  readonly referenceOf: (entity: Entity) => Reference | undefined
  /** False: the author field grants nothing, so a remote person may name a local one in it. */
  readonly isAuthorFieldAuthoritative: boolean
  readonly listParts: (entity: Entity) => readonly PartReference[]
  /** Undefined: only retractions refer to the type. */
  readonly parentsIn: ((entity: Entity, threadPost: ThreadPost | undefined) => ParentsOfOthers) | undefined
  readonly isEmpty: (entity: Entity) => boolean
  /** The texts and names that filters of moderators compare. */
  readonly documentOf: (entity: Entity, references: References) => FilterDocument | undefined
  /** The text whose mentions are stored, and their place; undefined: none are. */
  readonly mentioningText: (entity: Entity) => MentioningText | undefined
  /** The notifications that it causes; undefined: none. */
  readonly causeOf: (entity: Entity, context: NotificationContext) => NotificationCause | undefined
  /** A public post: clients get a live event, and this pod subscribes to its comments. */
  readonly isPublicPost: (entity: Entity) => boolean
}

export type NotificationCause = Extract<keyof NotificationCauses, 'posts' | 'comments' | 'likes' | 'reshares'>

const none = () => undefined
const no = () => false

/** Functions of types without a text, a parent or recipients of notifications. */
const withoutContent = {
  referenceOf: none,
  isAuthorFieldAuthoritative: true,
  listParts: () => [],
  parentsIn: undefined,
  isEmpty: no,
  documentOf: none,
  mentioningText: none,
  causeOf: none,
  isPublicPost: no,
} as const

const RECEIVING_RULES: { readonly [Type in ReceivableEntity['type']]: ReceivingRules<EntityOfType<Type>> } = {
  status_message: {
    referenceOf: none,
    isAuthorFieldAuthoritative: true,
    listParts: ({ photos, poll }) => [...photos, ...(poll === undefined ? [] : [poll])],
    parentsIn({ author, guid, public: isPublic, poll }) {
      const threadPost = { author, isLocal: false, isPublic }
      const polls = poll === undefined ? [] : [{ kind: 'poll', guid: poll.guid, threadPost } as const]
      return { threadPosts: [{ kind: 'post', guid, threadPost }, ...polls] }
    },
    isEmpty: ({ text, photos }) => text.trim() === '' && photos.length === 0,
    documentOf({ guid, author, public: isPublic, text, poll }) {
      const pollTexts = poll && [poll.question, ...poll.poll_answers.map(({ answer }) => answer)]
      return postDocument({ guid, author, isPublic }, { text, poll: pollTexts })
    },
    mentioningText: ({ text }) => ({ text, kind: 'posts' }),
    // A post notifies only the people it mentions.
    causeOf: ({ text }) => (readMentionedAddresses(text).length > 0 ? 'posts' : undefined),
    isPublicPost: ({ public: isPublic }) => isPublic,
  },
  reshare: {
    ...withoutContent,
    referenceOf: ({ root_guid: guid, root_author: author }) =>
      guid === undefined ? undefined : { parent: { kind: 'post', guid }, author },
    parentsIn: ({ author, guid }) => ({
      threadPosts: [{ kind: 'post', guid, threadPost: { author, isLocal: false, isPublic: true } }],
    }),
    causeOf: ({ root_author: author }, { isLocalAddress }) => (isLocalAddress(author) ? 'reshares' : undefined),
    isPublicPost: () => true,
  },
  comment: {
    referenceOf: ({ parent_guid: guid }) => ({ parent: { kind: 'post', guid } }),
    isAuthorFieldAuthoritative: true,
    listParts: () => [],
    parentsIn: ({ guid }, threadPost) =>
      threadPost === undefined ? {} : { threadPosts: [{ kind: 'comment', guid, threadPost }] },
    isEmpty: ({ text }) => text.trim() === '',
    documentOf: ({ guid, author, text }, { threadPost }) =>
      commentDocument({ guid, author, isPublic: threadPost?.isPublic ?? false }, text),
    mentioningText: ({ text }) => ({ text, kind: 'comments' }),
    causeOf: () => 'comments',
    isPublicPost: no,
  },
  conversation: {
    ...withoutContent,
    parentsIn: (entity) => ({ conversation: entity }),
    documentOf({ guid, author, subject, messages }) {
      const texts = [subject, ...messages.map(({ text }) => text)]
      return messageDocument({ guid: messages[0]?.guid ?? guid, author }, texts)
    },
  },
  photo: withoutContent,
  like: {
    ...withoutContent,
    referenceOf: ({ parent_type: type, parent_guid: guid }) => ({
      parent: { kind: type === 'Post' ? 'post' : 'comment', guid },
    }),
    // A like notifies only the author of its parent. The author of a liked comment is not known at this point.
    causeOf: ({ positive, parent_type: type }, { isParentLocal }) =>
      positive && (isParentLocal || type === 'Comment') ? 'likes' : undefined,
  },
  poll_participation: {
    ...withoutContent,
    referenceOf: ({ parent_guid: guid }) => ({ parent: { kind: 'poll', guid } }),
  },
  participation: {
    ...withoutContent,
    referenceOf: ({ parent_guid: guid }) => ({ parent: { kind: 'post', guid } }),
  },
  message: {
    ...withoutContent,
    referenceOf: ({ conversation_guid: conversation }) => ({ conversation }),
    documentOf: ({ guid, author, text }) => messageDocument({ guid, author }, [text]),
  },
  profile: {
    ...withoutContent,
    // The guid is added with the fields of the author.
    documentOf({ author, first_name: first = '', last_name: last = '', bio = '', tag_string: tags = '' }) {
      return profileDocument({ guid: '', author }, { name: `${first} ${last}`.trim(), bio, tags: readTags(tags) })
    },
  },
  contact: withoutContent,
  account_deletion: withoutContent,
  account_migration: { ...withoutContent, isAuthorFieldAuthoritative: false },
  retraction: {
    ...withoutContent,
    referenceOf: ({ target_type: type, target_guid: guid }) => ({ target: { type, guid } }),
    isAuthorFieldAuthoritative: false,
  },
}

/** The rules for received entities, by type. */
export function receivingRulesOf({ type }: ReceivableEntity): ReceivingRules<ReceivableEntity> {
  return RECEIVING_RULES[type] as ReceivingRules<ReceivableEntity> // the table pairs each type with its functions
}

/** The parent of an entity: none or one. */
export function listParents(entity: ReceivableEntity): readonly ParentReference[] {
  const reference = receivingRulesOf(entity).referenceOf(entity)
  return reference !== undefined && 'parent' in reference ? [reference.parent] : []
}

/** The target of a retraction: none or one. */
export function listRetractionTargets(entity: ReceivableEntity): readonly RetractionTarget[] {
  const reference = receivingRulesOf(entity).referenceOf(entity)
  return reference !== undefined && 'target' in reference ? [reference.target] : []
}

/** The conversation of a message: none or one. */
export function listConversationGuids(entity: ReceivableEntity): readonly string[] {
  const reference = receivingRulesOf(entity).referenceOf(entity)
  return reference !== undefined && 'conversation' in reference ? [reference.conversation] : []
}

/** The photos and the poll of a post. */
export function listParts(entity: ReceivableEntity): readonly PartReference[] {
  return receivingRulesOf(entity).listParts(entity)
}

/** The guids of parents by kind, as `findPostReferences` takes them. */
export function groupGuidsByKind(
  parents: readonly ParentReference[],
): Readonly<Record<`${ParentReference['kind']}s`, readonly string[]>> {
  const guidsOf = (kind: ParentReference['kind']) =>
    parents.filter((parent) => parent.kind === kind).map(({ guid }) => guid)
  return { posts: guidsOf('post'), comments: guidsOf('comment'), polls: guidsOf('poll') }
}

/** A target as locks and waiting messages name it; undefined: a person, for which no message waits. */
export function keyOfTarget({ type, guid }: RetractionTarget): EntityKey | undefined {
  return type === 'Person' ? undefined : `${RETRACTED_RECORDS[type]}:${guid}`
}

/** The key of the record of an entity. None for an entity that only changes others: no message waits for it. */
export function recordKeysOf(entity: ReceivableEntity): readonly EntityKey[] {
  const { record } = ENTITY_TYPES[entity.type]
  return record === undefined || !('guid' in entity) ? [] : [`${record}:${entity.guid}`]
}

/** Comments, likes, votes and participations. */
type Interaction = Extract<ReceivableEntity, { readonly parent_guid: string }>

export function isInteraction(entity: ReceivableEntity): entity is Interaction {
  return 'parent_guid' in entity
}
