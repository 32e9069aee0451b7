import { ProtocolError } from '../errors.js'
import { cleanText } from '../xml/xml.js'
import {
  buildJson,
  type EntityDefinition,
  findProperty,
  type Json,
  type JsonKind,
  type PropertySource,
  readProperties,
} from './define-entity.js'
import { ENTITY_TYPES, type Entity, isRelayable } from './registry.js'
import { listElements, signedElements } from './relayable-elements.js'
import { type Elements, type Relayable, relayables } from './relayables.js'

/** The JSON form of an entity, for archives and tests; it is never sent to other pods. */
export interface EntityJson {
  readonly entity_type: string
  readonly entity_data: Readonly<Record<string, Json>>
  /** Relayables only: the names of the signed properties, in their order. */
  readonly property_order?: readonly string[]
}

// NCName of XML 1.0. The XML reader accepts only names that can be written again; names from JSON are checked here.
const nameStart = [
  String.raw`A-Z_a-z\xC0-\xD6\xD8-\xF6\xF8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D\u2070-\u218F\u2C00-\u2FEF`,
  String.raw`\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\u{10000}-\u{EFFFF}`,
].join('')
const elementName = new RegExp(String.raw`^[${nameStart}][${nameStart}.0-9\xB7\u0300-\u036F\u203F\u2040-]*$`, 'u')

const definitionByName = new Map<string, EntityDefinition>(
  Object.entries(ENTITY_TYPES).map(([type, { definition }]) => [type, definition]),
)

export function entityToJson(entity: Entity): EntityJson {
  const knownProperties = buildJson(ENTITY_TYPES[entity.type].definition, entity)
  if (!isRelayable(entity)) return { entity_type: entity.type, entity_data: knownProperties }

  const elements = listElements(entity)
  const data = Object.fromEntries<Json>(elements.map(([name, text]) => [name, unknownValue(entity.type, name, text)]))
  return {
    entity_type: entity.type,
    entity_data: { ...data, ...knownProperties, author_signature: entity.author_signature ?? '' },
    property_order: elements.map(([name]) => name),
  }
}

/**
 * The JSON form with the texts that the author of a relayable has signed, so that its signature holds: the network ID of an author who
 * has moved is the old one in them. Times that cannot be read, and booleans, stay as they are stored.
 */
export function signedEntityToJson(entity: Relayable): EntityJson {
  const json = entityToJson(entity)
  const signedElements = listElements(entity).filter(([name, text]) => {
    const property = findProperty(relayables[entity.type], name)
    return property !== undefined && typeof json.entity_data[name] === 'string' && property.canonical?.(text) !== ''
  })
  return { ...json, entity_data: { ...json.entity_data, ...Object.fromEntries(signedElements) } }
}

/** Reads the JSON form by the same rules as XML. Throws `UnknownEntity` or `ValidationError`. */
export function entityFromJson(json: unknown, receivedAt: Date): Entity {
  if (!isObject(json)) throw new ProtocolError('ValidationError', 'the entity is not a JSON object')
  const { entity_type: type, entity_data: data } = json
  const definition = typeof type === 'string' ? definitionByName.get(type) : undefined
  if (definition === undefined) throw new ProtocolError('UnknownEntity', 'the type of the entity is unknown')
  if (!isObject(data)) throw new ProtocolError('ValidationError', 'entity_data is not a JSON object')

  const entity = readProperties(definition, jsonSource(definition.name, data), receivedAt) as Entity // as the table says
  if (!isRelayable(entity) || json['property_order'] === undefined) return entity
  return { ...entity, elements: readOrder(entity, json['property_order'], data) }
}

function jsonSource(entity: string, data: Readonly<Record<string, unknown>>): PropertySource {
  const value = (property: string) => (Object.hasOwn(data, property) ? data[property] : undefined)
  return {
    entity,
    text: (property, kind) => textOf(entity, property, value(property), kind),
    nested: (property, type) => nestedSource(property, type, value(property)),
    list(property, type) {
      const values = value(property) ?? []
      if (!Array.isArray(values)) throw new ProtocolError('ValidationError', `${entity}: ${property} is not an array`)
      return values.flatMap((one) => nestedSource(property, type, one) ?? [])
    },
  }
}

function nestedSource(property: string, type: string, value: unknown): PropertySource | undefined {
  if (value === undefined || value === null) return undefined
  if (!isObject(value) || value['entity_type'] !== type || !isObject(value['entity_data'])) {
    throw new ProtocolError('ValidationError', `${property} is not of type ${type}`)
  }
  return jsonSource(type, value['entity_data'])
}

/** The JSON type must match; the text is then read as from XML, without characters that XML forbids. */
function textOf(entity: string, property: string, value: unknown, kind: JsonKind): string | undefined {
  if (value === undefined) return undefined
  if (value === null) return ''
  if (typeof value !== kind) throw new ProtocolError('ValidationError', `${entity}: ${property} is not of type ${kind}`)
  return cleanText(String(value))
}

function readOrder(entity: Relayable, order: unknown, data: Readonly<Record<string, unknown>>): Elements {
  if (!Array.isArray(order)) throw new ProtocolError('ValidationError', 'property_order is not a list of names')
  const elements = order.map((name: unknown): [string, string] => {
    const value = typeof name === 'string' && Object.hasOwn(data, name) ? data[name] : undefined
    if (typeof name !== 'string' || !elementName.test(name) || !isScalar(value)) {
      throw new ProtocolError('ValidationError', 'property_order names a property without a value')
    }
    return [name, value === null ? '' : cleanText(String(value))]
  })
  return signedElements(relayables[entity.type], elements)
}

function unknownValue(type: Entity['type'], name: string, text: string): Json {
  return findProperty(ENTITY_TYPES[type].definition, name) === undefined ? text : null
}

function isScalar(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
