import { ProtocolError } from '../errors.js'
import type { XmlNode } from '../xml/xml.js'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }
export type JsonKind = 'string' | 'number' | 'boolean'

/** The source of an entity: an XML element, or the `entity_data` of the JSON form. */
export interface PropertySource {
  /** Name of the entity, for error texts. */
  readonly entity: string
  /** The text of a property: `undefined` if it is absent, '' if it is empty. */
  text(property: string, kind: JsonKind): string | undefined
  /** The first entity nested under a property; `undefined` if it is absent or empty. */
  nested(property: string, entity: string): PropertySource | undefined
  /** All entities nested under a property, without empty ones. */
  list(property: string, entity: string): readonly PropertySource[]
}

/** Reads and writes one property of an entity, as XML and as JSON. */
export interface Property<Value> {
  /** Throws `ValidationError` for an invalid or missing value. */
  read(source: PropertySource, name: string, receivedAt: Date): Value
  nodes(value: Value, name: string): readonly XmlNode[]
  json(value: Value): Json
  /** The canonical form of a text, for values that pods may sign in another form than they send (FEDERATION.md, "Relayables"). */
  canonical?(text: string): string
}

export type Properties = Readonly<Record<string, Property<unknown>>>

export interface EntityDefinition<Name extends string = string, P extends Properties = Properties> {
  readonly name: Name
  readonly properties: P
  /** The problem of values that are valid alone but not together. */
  check?(entity: FieldsOf<P>): string | undefined
}

type ValueOf<P> = P extends Property<infer Value> ? Value : never
type OptionalOf<P> = { [Key in keyof P]: undefined extends ValueOf<P[Key]> ? Key : never }[keyof P]
type Flat<Fields> = { readonly [Key in keyof Fields]: Fields[Key] }

export type FieldsOf<P> = Flat<
  { [Key in Exclude<keyof P, OptionalOf<P>>]: ValueOf<P[Key]> } & { [Key in OptionalOf<P>]?: ValueOf<P[Key]> }
>

/** The type of an entity, derived from its table of properties. */
export type EntityOf<Definition> =
  Definition extends EntityDefinition<infer Name, infer P> ? Flat<{ type: Name } & FieldsOf<P>> : never

export function defineEntity<Name extends string, P extends Properties>(
  name: Name,
  properties: P,
  check?: (entity: FieldsOf<P>) => string | undefined,
): EntityDefinition<Name, P> {
  return check ? { name, properties, check } : { name, properties }
}

/** The property with a name from outside; `Object.hasOwn` keeps out names such as `toString`. */
export function findProperty(definition: EntityDefinition, name: string): Property<unknown> | undefined {
  return Object.hasOwn(definition.properties, name) ? definition.properties[name] : undefined
}

/** Reads an entity by its table. Throws `ValidationError` with the name of the invalid property. */
export function readProperties<Definition extends EntityDefinition>(
  definition: Definition,
  source: PropertySource,
  receivedAt: Date,
): EntityOf<Definition> {
  const entity: Record<string, unknown> = { type: definition.name }
  for (const name in definition.properties) {
    const value = definition.properties[name]?.read(source, name, receivedAt)
    if (value !== undefined) entity[name] = value
  }
  const problem = definition.check?.(entity)
  if (problem) throw new ProtocolError('ValidationError', `${source.entity}: ${problem}`)
  return entity as EntityOf<Definition> // the table has just read each of its properties
}

/** The entity as an XML element, properties in the order of the table. */
export function writeProperties(definition: EntityDefinition, entity: object): XmlNode {
  return { name: definition.name, content: buildNodes(definition, entity) }
}

export function buildNodes(definition: EntityDefinition, entity: object): XmlNode[] {
  const values = new Map<string, unknown>(Object.entries(entity))
  return Object.entries(definition.properties).flatMap(([name, property]) => property.nodes(values.get(name), name))
}

/** The values of an entity in JSON; properties without value are left out. */
export function buildJson(definition: EntityDefinition, entity: object): Record<string, Json> {
  const values = new Map<string, unknown>(Object.entries(entity))
  const data: Record<string, Json> = {}
  for (const [name, property] of Object.entries(definition.properties)) {
    const value = values.get(name)
    if (value !== undefined) data[name] = property.json(value)
  }
  return data
}
