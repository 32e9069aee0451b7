import { ProtocolError } from '../errors.js'
import { writeXml } from '../xml/xml.js'
import type { XmlElement } from '../xml/xml-element.js'
import { type ConversationEntity, conversation, type MessageEntity, message } from './conversations.js'
import { type EntityDefinition, readProperties, writeProperties } from './define-entity.js'
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
import { readElements, writeRelayable } from './relayable-elements.js'
import { type Elements, type ParticipationEntity, participation, type Relayable, relayables } from './relayables.js'
import { type RetractionEntity, retraction } from './retraction.js'
import { xmlSource } from './xml-source.js'

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

/**
 * Entities that are stored. Events are read and verified, then rejected as `UnknownEntity` (sender-rules.ts).
 * @public
 */
export type ReceivableEntity = Exclude<ReceivedEntity, { readonly type: 'event' | 'event_participation' }>

const roots = {
  status_message: statusMessage,
  reshare,
  photo,
  ...relayables,
  participation,
  profile,
  contact,
  conversation,
  message,
  retraction,
  account_deletion: accountDeletion,
  account_migration: accountMigration,
  event,
} as const satisfies { readonly [Type in RootEntity['type']]: { readonly name: Type } }

/** All entities of the protocol. */
export const definitions = {
  ...roots,
  location,
  embed,
  poll,
  poll_answer: pollAnswer,
} as const satisfies { readonly [Type in Entity['type']]: { readonly name: Type } }

const definitionOfRoot = new Map<string, EntityDefinition>(Object.entries(roots))

/** Reads the root of a payload. Throws `UnknownEntity` or `ValidationError`. */
export function readEntity(payload: XmlElement, receivedAt: Date): ReceivedEntity {
  const definition = definitionOfRoot.get(payload.name)
  if (definition === undefined) throw new ProtocolError('UnknownEntity', `unknown entity ${payload.name.slice(0, 64)}`)

  const entity = readProperties(definition, xmlSource(payload), receivedAt) as RootEntity // as the table of roots says
  if (!isRelayable(entity)) return entity
  return Object.assign(entity, { elements: readElements(relayables[entity.type], payload) })
}

/** The payload of an entity. A received relayable is written as received, so that its author's signature stays valid. */
export function writeEntity(entity: Entity): string {
  return writeXml(isRelayable(entity) ? writeRelayable(entity) : writeProperties(definitions[entity.type], entity))
}

export function isRelayable(entity: Entity): entity is Relayable {
  return Object.hasOwn(relayables, entity.type)
}
