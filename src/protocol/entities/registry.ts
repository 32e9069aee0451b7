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

/** Entities that are never the root of a payload. */
type NestedEntity = LocationEntity | EmbedEntity | PollEntity | PollAnswerEntity

/** Entities that can be the root of a payload. */
type RootEntity =
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

export type Entity = RootEntity | NestedEntity

type Received<Root> = Root extends Relayable ? Root & { readonly elements: Elements } : Root

/** A received entity; relayables carry the elements that their author signed. */
export type ReceivedEntity = Received<RootEntity>

export type EntityType = Entity['type']

/** What the entities of a type are. How they are stored and received stands in the tables of the other layers (CONTRIBUTING.md). */
interface EntityFacts<Each extends Entity> {
  readonly definition: EntityDefinition<Each['type']>
  /** `stored` and `verified` are roots of payloads; the latter are rejected as `UnknownEntity`. `nested` stand inside others. */
  readonly use: 'stored' | 'verified' | 'nested'
  /** The kind of record that it is stored as; undefined: it is part of a record, or changes other records. */
  readonly record: string | undefined
  /** Pods fetch a public one by its guid. */
  readonly isFetchable: boolean
  /** The names of the type in retractions. */
  readonly retractedAs: readonly TargetType[]
  /** Whether it deletes something or ends a relation. Blocks and limits do not apply to these: nothing ended may stay here. */
  readonly ends: 'always' | 'never' | ((entity: Each) => boolean)
  /** The text with links to other entities; '' if there is none. */
  readonly linkText: (entity: Each) => string
}

/** Part of another entity. */
const nestedPart = {
  use: 'nested',
  record: undefined,
  isFetchable: false,
  retractedAs: [],
  ends: 'never',
  linkText: () => '',
} as const

/** Changes records of other types or people. */
const change = { ...nestedPart, use: 'stored' } as const

/** Read and verified, but no pod of the network stores it. */
const notStored = { ...nestedPart, use: 'verified' } as const

/** All entities of the protocol; parents stand before children. */
export const ENTITY_TYPES = {
  profile: { definition: profile, ...change },
  status_message: {
    definition: statusMessage,
    use: 'stored',
    record: 'post',
    isFetchable: true,
    retractedAs: ['Post', 'StatusMessage', 'Reshare'], // other pods may name a post by any of them
    ends: 'never',
    linkText: ({ text }) => text,
  },
  reshare: {
    definition: reshare,
    use: 'stored',
    record: 'post',
    isFetchable: true,
    retractedAs: ['Post', 'StatusMessage', 'Reshare'],
    ends: 'never',
    linkText: () => '',
  },
  photo: {
    definition: photo,
    use: 'stored',
    record: 'photo',
    isFetchable: false,
    retractedAs: ['Photo'],
    ends: 'never',
    linkText: () => '',
  },
  comment: {
    definition: relayables.comment,
    use: 'stored',
    record: 'comment',
    isFetchable: true,
    retractedAs: ['Comment'],
    ends: 'never',
    linkText: ({ text }) => text,
  },
  like: {
    definition: relayables.like,
    use: 'stored',
    record: 'like',
    isFetchable: false,
    retractedAs: ['Like'],
    ends: 'never',
    linkText: () => '',
  },
  poll_participation: {
    definition: relayables.poll_participation,
    use: 'stored',
    record: 'poll_participation',
    isFetchable: false,
    retractedAs: ['PollParticipation'],
    ends: 'never',
    linkText: () => '',
  },
  participation: {
    definition: participation,
    use: 'stored',
    record: 'participation',
    isFetchable: false,
    retractedAs: ['Participation'],
    ends: 'never',
    linkText: () => '',
  },
  poll: { definition: poll, ...nestedPart, record: 'poll', isFetchable: true, retractedAs: ['Poll'] },
  contact: { definition: contact, ...change, ends: ({ sharing }) => !sharing },
  conversation: {
    definition: conversation,
    use: 'stored',
    record: 'conversation',
    isFetchable: false,
    retractedAs: ['Conversation'],
    ends: 'never',
    linkText: ({ messages }) => messages.map(({ text }) => text).join('\n'),
  },
  message: {
    definition: message,
    use: 'stored',
    record: 'message',
    isFetchable: false,
    retractedAs: [], // nobody can take back a message
    ends: 'never',
    linkText: ({ text }) => text,
  },
  retraction: { definition: retraction, ...change, ends: 'always' },
  account_migration: { definition: accountMigration, ...change, ends: 'always' },
  account_deletion: { definition: accountDeletion, ...change, ends: 'always' },
  event: { definition: event, ...notStored },
  event_participation: { definition: relayables.event_participation, ...notStored },
  location: { definition: location, ...nestedPart },
  embed: { definition: embed, ...nestedPart },
  poll_answer: { definition: pollAnswer, ...nestedPart },
} as const satisfies { readonly [Type in EntityType]: EntityFacts<Extract<Entity, { readonly type: Type }>> }

type Facts = typeof ENTITY_TYPES
type TypesWith<Wanted> = { [Type in EntityType]: Facts[Type] extends Wanted ? Type : never }[EntityType]

/** Entities that are stored, or change what is stored. */
export type ReceivableEntity = Extract<ReceivedEntity, { readonly type: TypesWith<{ readonly use: 'stored' }> }>

/** Comments, likes and votes. */
export type StoredRelayable = Extract<ReceivableEntity, Relayable>
export type RelayableKind = StoredRelayable['type']

/** What this pod has of entities: posts, comments, polls … */
export type RecordKind = Exclude<Facts[EntityType]['record'], undefined>
export type FetchableKind = Facts[TypesWith<{ readonly isFetchable: true }>]['record']

/** Records that retractions delete, and the names by which these name them. */
export type RetractableKind = Exclude<
  Facts[TypesWith<{ readonly record: string; readonly retractedAs: readonly [TargetType, ...TargetType[]] }>]['record'],
  undefined
>
type RecordName = Facts[EntityType]['retractedAs'][number]

const rows = Object.values(ENTITY_TYPES)

/** The kinds of relayables that are stored. */
export const RELAYABLE_KINDS = Object.keys(relayables).filter(
  (type) => ENTITY_TYPES[type as Relayable['type']].use === 'stored',
) as readonly RelayableKind[] // the keys of the table

/** The record that a retraction deletes, by the name in the retraction; parents before children. */
export const RETRACTED_RECORDS = Object.fromEntries(
  rows.flatMap(({ record, retractedAs }) => retractedAs.map((name) => [name, record])),
) as Readonly<Record<RecordName, RetractableKind>> // as the table says

/** The kind of record that a type in a URL names; undefined: entities of this type cannot be fetched. */
export function fetchableKind(type: string): FetchableKind | undefined {
  return fetchableKinds.get(type)
}

/** Posts have two types, and may be named by the kind of their record. */
const fetchableKinds = new Map<string, FetchableKind>(
  Object.entries(ENTITY_TYPES).flatMap(([type, facts]) =>
    facts.isFetchable
      ? [
          [type, facts.record],
          [facts.record, facts.record],
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
  return ENTITY_TYPES[entity.type].use === 'stored'
}

export function isStoredRelayable(entity: ReceivedEntity): entity is StoredRelayable {
  return isRelayable(entity) && isRelayableKind(entity.type)
}

export function isRelayableKind(kind: string): kind is RelayableKind {
  return (RELAYABLE_KINDS as readonly string[]).includes(kind)
}

/** Whether the entity deletes content, closes an account or ends a contact. */
export function endsContentOrContact(entity: ReceivableEntity): boolean {
  const { ends } = factsOf(entity)
  return typeof ends === 'string' ? ends === 'always' : ends(entity)
}

/** The text of an entity with links to others; empty if its type has none. */
export function readLinkedText(entity: Entity): string {
  return factsOf(entity).linkText(entity)
}

function factsOf(entity: Entity): EntityFacts<Entity> {
  return ENTITY_TYPES[entity.type] as unknown as EntityFacts<Entity> // the table pairs each type with its functions
}
