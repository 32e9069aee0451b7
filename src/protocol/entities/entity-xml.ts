import { ProtocolError } from '../errors.js'
import { writeXml } from '../xml/xml.js'
import type { XmlElement } from '../xml/xml-element.js'
import { type EntityDefinition, readProperties, writeProperties } from './define-entity.js'
import { ENTITY_TYPES, type Entity, isRelayable, type ReceivedEntity } from './registry.js'
import { readElements, writeRelayable } from './relayable-elements.js'
import { relayables } from './relayables.js'
import { xmlSource } from './xml-source.js'

/** The entities that can be at the top of a payload. */
const definitionOfPayload = new Map<string, EntityDefinition>(
  Object.entries(ENTITY_TYPES).flatMap(([type, { role, definition }]) => (role === 'part' ? [] : [[type, definition]])),
)

/** Reads the entity of a payload. Throws `UnknownEntity` or `ValidationError`. */
export function readEntity(payload: XmlElement, receivedAt: Date): ReceivedEntity {
  const definition = definitionOfPayload.get(payload.name)
  if (definition === undefined) throw new ProtocolError('UnknownEntity', `unknown entity ${payload.name.slice(0, 64)}`)

  const entity = readProperties(definition, xmlSource(payload), receivedAt) as ReceivedEntity // as the table says
  if (!isRelayable(entity)) return entity
  return Object.assign(entity, { elements: readElements(relayables[entity.type], payload) })
}

/** The payload of an entity. A received relayable is written as received, so that its author's signature stays valid. */
export function writeEntity(entity: Entity): string {
  if (isRelayable(entity)) return writeXml(writeRelayable(entity))
  return writeXml(writeProperties(ENTITY_TYPES[entity.type].definition, entity))
}
