import { type ConversationEntity, conversation, type MessageEntity, message } from './conversations.js'
import type { EntityDefinition } from './define-entity.js'
import { type EventEntity, event } from './events.js'
import { type LocationEntity, location } from './location.js'
import {
  type AccountDeletionEntity,
  type AccountMigrationEntity,
  accountDeletion,
  accountMigration,
  type ContactEntity,
  contact,
  type ProfileEntity,
  profile,
} from './people.js'
import {
  type EmbedEntity,
  embed,
  type PhotoEntity,
  type PollAnswerEntity,
  type PollEntity,
  photo,
  poll,
  pollAnswer,
  type ReshareEntity,
  reshare,
  type StatusMessageEntity,
  statusMessage,
} from './posts.js'
import { type Elements, type ParticipationEntity, participation, type Relayable, relayables } from './relayables.js'
import { type RetractionEntity, retraction, type TargetType } from './retraction.js'

/** Entities that are never at the top of a payload. */
type NestedEntity = LocationEntity | EmbedEntity | PollEntity | PollAnswerEntity

/** Entities that can be at the top of a payload. */
type PayloadEntity =
  | StatusMessageEntity
  | ReshareEntity
  | PhotoEntity
  | Relayable
  | ParticipationEntity
  | ProfileEntity
  | ContactEntity
  | ConversationEntity
  | MessageEntity
  | RetractionEntity
  | AccountDeletionEntity
  | AccountMigrationEntity
  | EventEntity

export type Entity = PayloadEntity | NestedEntity

type Received<Each> = Each extends Relayable ? Each & { readonly elements: Elements } : Each

/** A received entity; relayables carry the elements that their author signed. */
export type ReceivedEntity = Received<PayloadEntity>

export type EntityType = Entity['type']

/** The properties of an entity type. Tables of the other layers say how its entities are stored and received (CONTRIBUTING.md). */
interface EntityTraits<Each extends Entity> {
  readonly definition: EntityDefinition<Each['type']>
  /** A payload has a `received` or a `rejected` entity (`UnknownEntity`). A `part` is inside another entity. */
  readonly role: 'received' | 'rejected' | 'part'
  /** The kind of record that it is stored as; undefined: it is part of a record, or changes other records. */
  readonly record: string | undefined
  /** Pods fetch a public one by its guid. */
  readonly isFetchable: boolean
  /** The names of the type in retractions. */
  readonly retractedAs: readonly TargetType[]
  /** Whether it deletes something or ends a relation. Blocks and limits do not apply to these: what others have deleted would stay here. */
  readonly deletesOrEnds: 'always' | 'never' | ((entity: Each) => boolean)
  /** The text with links to other entities; '' if there is none. */
  readonly linkText: (entity: Each) => string
}

const withoutRecord = {
  record: undefined,
  isFetchable: false,
  retractedAs: [],
  deletesOrEnds: 'never',
  linkText: () => '',
} as const

const part = { ...withoutRecord, role: 'part' } as const

/** Changes records of other types or people. */
const change = { ...withoutRecord, role: 'received' } as const

/** Read and verified, but no pod of the network stores it. */
const neverStored = { ...withoutRecord, role: 'rejected' } as const

/** All entities of the protocol. */
export const ENTITY_TYPES = {
  profile: { definition: profile, ...change },
  status_message: {
    definition: statusMessage,
    role: 'received',
    record: 'post',
    isFetchable: true,
    retractedAs: ['Post', 'StatusMessage', 'Reshare'], // other pods may name a post by any of them
    deletesOrEnds: 'never',
    linkText: ({ text }) => text,
  },
  reshare: {
    definition: reshare,
    role: 'received',
    record: 'post',
    isFetchable: true,
    retractedAs: ['Post', 'StatusMessage', 'Reshare'],
    deletesOrEnds: 'never',
    linkText: () => '',
  },
  photo: {
    definition: photo,
    role: 'received',
    record: 'photo',
    isFetchable: false,
    retractedAs: ['Photo'],
    deletesOrEnds: 'never',
    linkText: () => '',
  },
  comment: {
    definition: relayables.comment,
    role: 'received',
    record: 'comment',
    isFetchable: true,
    retractedAs: ['Comment'],
    deletesOrEnds: 'never',
    linkText: ({ text }) => text,
  },
  like: {
    definition: relayables.like,
    role: 'received',
    record: 'like',
    isFetchable: false,
    retractedAs: ['Like'],
    deletesOrEnds: 'never',
    linkText: () => '',
  },
  poll_participation: {
    definition: relayables.poll_participation,
    role: 'received',
    record: 'poll_participation',
    isFetchable: false,
    retractedAs: ['PollParticipation'],
    deletesOrEnds: 'never',
    linkText: () => '',
  },
  participation: {
    definition: participation,
    role: 'received',
    record: 'participation',
    isFetchable: false,
    retractedAs: ['Participation'],
    deletesOrEnds: 'never',
    linkText: () => '',
  },
  poll: { definition: poll, ...part, record: 'poll', isFetchable: true, retractedAs: ['Poll'] },
  contact: { definition: contact, ...change, deletesOrEnds: ({ sharing }) => !sharing },
  conversation: {
    definition: conversation,
    role: 'received',
    record: 'conversation',
    isFetchable: false,
    retractedAs: ['Conversation'],
    deletesOrEnds: 'never',
    linkText: ({ messages }) => messages.map(({ text }) => text).join('\n'),
  },
  message: {
    definition: message,
    role: 'received',
    record: 'message',
    isFetchable: false,
    retractedAs: [], // a message cannot be retracted
    deletesOrEnds: 'never',
    linkText: ({ text }) => text,
  },
  retraction: { definition: retraction, ...change, deletesOrEnds: 'always' },
  account_migration: { definition: accountMigration, ...change, deletesOrEnds: 'always' },
  account_deletion: { definition: accountDeletion, ...change, deletesOrEnds: 'always' },
  event: { definition: event, ...neverStored },
  event_participation: { definition: relayables.event_participation, ...neverStored },
  location: { definition: location, ...part },
  embed: { definition: embed, ...part },
  poll_answer: { definition: pollAnswer, ...part },
} as const satisfies { readonly [Type in EntityType]: EntityTraits<Extract<Entity, { readonly type: Type }>> }

type EntityTypes = typeof ENTITY_TYPES
type TypesWith<Wanted> = { [Type in EntityType]: EntityTypes[Type] extends Wanted ? Type : never }[EntityType]

/** Entities that are stored, or change stored rows. */
export type ReceivableEntity = Extract<ReceivedEntity, { readonly type: TypesWith<{ readonly role: 'received' }> }>

/** The receivable entity of a type. */
export type EntityOfType<Type extends ReceivableEntity['type']> = Extract<ReceivableEntity, { readonly type: Type }>

/** Comments, likes and votes. */
export type StoredRelayable = Extract<ReceivableEntity, Relayable>
export type RelayableKind = StoredRelayable['type']

/** Records of this pod that are entities: posts, comments, polls … */
export type RecordKind = Exclude<EntityTypes[EntityType]['record'], undefined>
export type FetchableKind = EntityTypes[TypesWith<{ readonly isFetchable: true }>]['record']

/** Records that retractions delete, and the names by which these name them. */
export type RetractableKind = Exclude<
  EntityTypes[TypesWith<{
    readonly record: string
    readonly retractedAs: readonly [TargetType, ...TargetType[]]
  }>]['record'],
  undefined
>
type RecordName = EntityTypes[EntityType]['retractedAs'][number]

/**
 * The order in which a batch is resolved and stored: parents before children, and what ends something last. All transactions take
 * their locks in this order.
 */
export const STORING_ORDER = [
  'profile',
  'status_message',
  'reshare',
  'photo',
  'comment',
  'like',
  'poll_participation',
  'participation',
  'contact',
  'conversation',
  'message',
  'retraction',
  'account_migration',
  'account_deletion',
] as const satisfies readonly ReceivableEntity['type'][]

const storingRanks = Object.fromEntries(STORING_ORDER.map((type, rank) => [type, rank])) as Readonly<
  Record<(typeof STORING_ORDER)[number], number>
> // one for each type of the list

/** The place of an entity in `STORING_ORDER`; a type without a place does not compile. */
export function storingRank({ type }: ReceivableEntity): number {
  return storingRanks[type]
}

const rows = Object.values(ENTITY_TYPES)

/** The kinds of relayables that are stored. */
export const RELAYABLE_KINDS = Object.keys(relayables).filter(
  (type) => ENTITY_TYPES[type as Relayable['type']].role === 'received',
) as readonly RelayableKind[] // the keys of the table

/** The record that a retraction deletes, by the name in the retraction; in `STORING_ORDER`, polls last. */
export const RETRACTED_RECORDS = Object.fromEntries(
  ([...STORING_ORDER, 'poll'] as const)
    .map((type) => ENTITY_TYPES[type])
    .flatMap(({ record, retractedAs }) => retractedAs.map((name) => [name, record])),
) as Readonly<Record<RecordName, RetractableKind>> // as the table says

/** The kind of record that a type in a URL names; undefined: entities of this type cannot be fetched. */
export function fetchableKind(type: string): FetchableKind | undefined {
  return fetchableKinds.get(type)
}

/** Posts have two types, and may be named by the kind of their record. */
const fetchableKinds = new Map<string, FetchableKind>(
  Object.entries(ENTITY_TYPES).flatMap(([type, traits]) =>
    traits.isFetchable
      ? [
          [type, traits.record],
          [traits.record, traits.record],
        ]
      : [],
  ),
)

/** The names of a kind of record in retractions. */
export function namesInRetractions(kind: RecordKind): readonly RecordName[] {
  return [...new Set(rows.flatMap(({ record, retractedAs }) => (record === kind ? retractedAs : [])))]
}

export function isRelayable(entity: Entity): entity is Relayable {
  return Object.hasOwn(relayables, entity.type)
}

export function isReceivable(entity: ReceivedEntity): entity is ReceivableEntity {
  return ENTITY_TYPES[entity.type].role === 'received'
}

export function isStoredRelayable(entity: ReceivedEntity): entity is StoredRelayable {
  return isRelayable(entity) && isRelayableKind(entity.type)
}

export function isRelayableKind(kind: string): kind is RelayableKind {
  return (RELAYABLE_KINDS as readonly string[]).includes(kind)
}

/** Whether the entity deletes content, closes an account or ends a contact. */
export function endsContentOrContact(entity: ReceivableEntity): boolean {
  const { deletesOrEnds } = traitsOf(entity)
  return typeof deletesOrEnds === 'string' ? deletesOrEnds === 'always' : deletesOrEnds(entity)
}

/** The text of an entity with links to others; empty if its type has none. */
export function readLinkedText(entity: Entity): string {
  return traitsOf(entity).linkText(entity)
}

function traitsOf(entity: Entity): EntityTraits<Entity> {
  return ENTITY_TYPES[entity.type] as unknown as EntityTraits<Entity> // the table pairs each type with its functions
}
