import { ProtocolError } from '../errors.js'
import {
  buildJson,
  type EntityDefinition,
  type EntityOf,
  type Json,
  type Property,
  type PropertySource,
  readProperties,
  writeProperties,
} from './define-entity.js'
import { timestamp, type ValueType } from './value-types.js'

/** Required, with a readable value. */
export function required<Value>(type: ValueType<Value>): Property<Value> {
  return textProperty<Value, Value>(type, refuse('is missing'), refuse('has no value that can be read'))
}

/** A missing or unreadable value is ignored. A readable value must be valid. */
export function optional<Value>(type: ValueType<Value>): Property<Value | undefined> {
  const nothing = () => undefined
  return textProperty<Value | undefined, Value>(type, nothing, nothing)
}

/** A missing value is the default; a present one must be readable: `<public/>` is not the default. */
export function withDefaultIfMissing<Value>(type: ValueType<Value>, value: Value): Property<Value> {
  return textProperty<Value, Value>(type, () => value, refuse('has no value that can be read'))
}

/** A missing or unreadable value is the default. */
export function withDefaultIfUnreadable<Value>(type: ValueType<Value>, value: Value): Property<Value> {
  const fallBack = () => value
  return textProperty<Value, Value>(type, fallBack, fallBack)
}

/** The creation time; the time of receipt if the other pod gives none. */
export const createdAt: Property<Date> = textProperty(timestamp, timeOfReceipt, timeOfReceipt)

/** A nested entity; an empty element counts as absent. */
export function nested<Definition extends EntityDefinition>(
  definition: Definition,
): Property<EntityOf<Definition> | undefined> {
  return {
    read(source, name, receivedAt) {
      const inner = source.nested(name, definition.name)
      return inner && readProperties(definition, inner, receivedAt)
    },
    nodes: (value) => (value === undefined ? [] : [writeProperties(definition, value)]),
    json: (value) => (value === undefined ? null : nestedJson(definition, value)),
  }
}

export function requiredNested<Definition extends EntityDefinition>(
  definition: Definition,
): Property<EntityOf<Definition>> {
  const property = nested(definition)
  return {
    ...property,
    read: (source, name, receivedAt) =>
      property.read(source, name, receivedAt) ?? refuse('is missing')(receivedAt, source, name),
  }
}

/** A list of entities of one type, in order. */
export function listOf<Definition extends EntityDefinition>(
  definition: Definition,
  limits: { readonly min?: number; readonly max: number },
): Property<readonly EntityOf<Definition>[]> {
  const { min = 0, max } = limits
  return {
    read(source, name, receivedAt) {
      const inner = source.list(name, definition.name)
      if (inner.length < min || inner.length > max) {
        return refuse(`are ${inner.length}, not ${min} to ${max}`)(receivedAt, source, name)
      }
      return inner.map((one) => readProperties(definition, one, receivedAt))
    },
    nodes: (values) => values.map((value) => writeProperties(definition, value)),
    json: (values) => values.map((value) => nestedJson(definition, value)),
  }
}

type Fallback<Value> = (receivedAt: Date, source: PropertySource, name: string) => Value

function textProperty<Value, Written extends Value = Value>(
  type: ValueType<Written>,
  missing: Fallback<Value>,
  unreadable: Fallback<Value>,
): Property<Value> {
  return {
    read(source, name, receivedAt) {
      const raw = source.text(name, type.kind)
      if (raw === undefined) return missing(receivedAt, source, name)
      const value = type.read(raw)
      if (value === undefined) return unreadable(receivedAt, source, name)
      const problem = type.problem?.(value)
      return problem === undefined ? value : refuse(problem)(receivedAt, source, name)
    },
    nodes: (value, name) => (isWritten<Written>(value) ? [{ name, content: type.write(value) }] : []),
    json: (value) => (isWritten<Written>(value) ? jsonValue(type, value) : null),
    ...(type.reformatted && { canonical: (raw: string) => canonical(type, raw) }),
  }
}

function isWritten<Written>(value: unknown): value is Written {
  return value !== undefined
}

function jsonValue<Value>(type: ValueType<Value>, value: Value): Json {
  return typeof value === 'boolean' || typeof value === 'number' ? value : type.write(value)
}

function nestedJson(definition: EntityDefinition, entity: object): Json {
  return { entity_type: definition.name, entity_data: buildJson(definition, entity) }
}

function canonical<Value>(type: ValueType<Value>, raw: string): string {
  const value = type.read(raw)
  return value === undefined ? '' : type.write(value)
}

function timeOfReceipt(receivedAt: Date): Date {
  return receivedAt
}

function refuse(problem: string): (receivedAt: Date, source: PropertySource, name: string) => never {
  return (_receivedAt, source, name) => {
    throw new ProtocolError('ValidationError', `${source.entity}: ${name} ${problem}`)
  }
}
