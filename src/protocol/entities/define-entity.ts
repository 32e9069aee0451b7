import { ProtocolError } from '../errors.js'
import type { XmlNode } from '../xml/xml.js'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }
export type JsonKind = 'string' | 'number' | 'boolean'

/** What an entity is read from: an XML element, or the `entity_data` of a JSON form. */
export interface Source {
  /** Name of the entity, for the reason of a refusal. */
  readonly entity: string
  /** The text of a property: `undefined` if it is not there, '' if it is there without a value. */
  text(property: string, kind: JsonKind): string | undefined
  /** The entity nested first under a property; `undefined` if it is not there or empty. */
  nested(property: string, entity: string): Source | undefined
  /** All entities nested under a property, without empty ones. */
  list(property: string, entity: string): readonly Source[]
}

/** How one property of an entity travels, in both forms. */
export interface Property<Value> {
  /** Throws `ValidationError` for what may not be there, or may not be missing. */
  read(source: Source, name: string, receivedAt: Date): Value
  nodes(value: Value, name: string): readonly XmlNode[]
  json(value: Value): Json
  /** For what pods may sign in another form than they send: the one form of a text (FEDERATION.md, "Relayables"). */
  canonical?(text: string): string
}

export type Properties = Readonly<Record<string, Property<unknown>>>

export interface EntityDefinition<Name extends string = string, P extends Properties = Properties> {
  readonly name: Name
  readonly properties: P
  /** Why values that are right one by one are wrong together. */
  check?(entity: FieldsOf<P>): string | undefined
}

type ValueOf<P> = P extends Property<infer Value> ? Value : never
type OptionalOf<P> = { [Key in keyof P]: undefined extends ValueOf<P[Key]> ? Key : never }[keyof P]
type Flat<Fields> = { readonly [Key in keyof Fields]: Fields[Key] }

export type FieldsOf<P> = Flat<
  { [Key in Exclude<keyof P, OptionalOf<P>>]: ValueOf<P[Key]> } & { [Key in OptionalOf<P>]?: ValueOf<P[Key]> }
>

/** The type of an entity, as its table of properties tells. */
export type EntityOf<Definition> =
  Definition extends EntityDefinition<infer Name, infer P> ? Flat<{ type: Name } & FieldsOf<P>> : never

export function defineEntity<Name extends string, P extends Properties>(
  name: Name,
  properties: P,
  check?: (entity: FieldsOf<P>) => string | undefined,
): EntityDefinition<Name, P> {
  return check ? { name, properties, check } : { name, properties }
}

/** The row of the table for a name that others have chosen: `toString` has none. */
export function propertyOf(definition: EntityDefinition, name: string): Property<unknown> | undefined {
  return Object.hasOwn(definition.properties, name) ? definition.properties[name] : undefined
}

/** Reads an entity by its table; throws `ValidationError` with the name of the property that is wrong. */
export function readProperties<Definition extends EntityDefinition>(
  definition: Definition,
  source: Source,
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

/** The entity as an element, its properties in the order of the table. */
export function writeProperties(definition: EntityDefinition, entity: object): XmlNode {
  return { name: definition.name, content: nodesOf(definition, entity) }
}

export function nodesOf(definition: EntityDefinition, entity: object): XmlNode[] {
  const values = new Map<string, unknown>(Object.entries(entity))
  return Object.entries(definition.properties).flatMap(([name, property]) => property.nodes(values.get(name), name))
}

/** The values of an entity in JSON; what has no value is left out. */
export function jsonOf(definition: EntityDefinition, entity: object): Record<string, Json> {
  const values = new Map<string, unknown>(Object.entries(entity))
  const data: Record<string, Json> = {}
  for (const [name, property] of Object.entries(definition.properties)) {
    const value = values.get(name)
    if (value !== undefined) data[name] = property.json(value)
  }
  return data
}
