import { Ajv, type SchemaObject } from 'ajv'
import type { EntityType } from './registry.js'
import { relayables } from './relayables.js'

const string = { type: 'string' }
const boolean = { type: 'boolean' }
const number = { type: 'number' }
const stringOrNull = { type: ['string', 'null'] }
const guid = { type: 'string', minLength: 16, maxLength: 255 }
const signature = { type: 'string', anyOf: [{ maxLength: 0 }, { minLength: 30 }] }

type PropertySchemas = Readonly<Record<string, SchemaObject>>

/** The properties of each type in the JSON form; `*` marks required ones. Undefined: the JSON form does not have the type. */
const entities: Readonly<Record<EntityType, PropertySchemas | undefined>> = {
  comment: { 'text*': string, created_at: string },
  like: { 'positive*': boolean, 'parent_type*': { enum: ['Post', 'Comment'] } },
  poll_participation: { 'poll_answer_guid*': guid },
  participation: { author: string, guid, parent_guid: guid, parent_type: { const: 'Post' } },
  status_message: {
    'guid*': guid,
    'public*': boolean,
    'created_at*': string,
    'text*': string,
    provider_display_name: string,
    location: nullable(entityReference('location')),
    poll: nullable(entityReference('poll')),
    photos: nullable({ type: 'array', items: entityReference('photo') }),
  },
  reshare: { 'author*': string, 'guid*': guid, 'created_at*': string, root_author: string, root_guid: guid },
  profile: {
    'author*': string,
    full_name: stringOrNull,
    first_name: stringOrNull,
    last_name: stringOrNull,
    gender: stringOrNull,
    bio: stringOrNull,
    birthday: stringOrNull,
    location: stringOrNull,
    image_url: stringOrNull,
  },
  photo: {
    'author*': string,
    'guid*': guid,
    'public*': boolean,
    'created_at*': string,
    'remote_photo_path*': string,
    'remote_photo_name*': string,
    text: stringOrNull,
    status_message_guid: guid,
    width: number,
    height: number,
  },
  poll: {
    'guid*': guid,
    'question*': string,
    'poll_answers*': { type: 'array', items: entityReference('poll_answer') },
  },
  poll_answer: { 'guid*': guid, 'answer*': string },
  location: { 'address*': string, 'lat*': string, 'lng*': string },
  embed: { url: stringOrNull, title: stringOrNull, description: stringOrNull, image: stringOrNull, nothing: boolean },
  event: undefined,
  event_participation: undefined,
  contact: undefined,
  conversation: undefined,
  message: undefined,
  retraction: undefined,
  account_deletion: undefined,
  account_migration: undefined,
}

const schemas = Object.entries(entities).flatMap(([name, properties]) =>
  properties ? [[name, properties] as const] : [],
)

/** The properties that all relayables have. */
const ofRelayables = { 'author*': string, 'guid*': guid, 'parent_guid*': guid, author_signature: signature }

/** JSON schema of the JSON form: a value must match exactly one type. */
const entitySchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  oneOf: schemas.map(([name]) => entityReference(name)),
  $defs: Object.fromEntries(schemas.map(([name, properties]) => [name, schemaOfEntity(name, properties)])),
}

// A separate Ajv instance: coercing types or dropping members would make invalid entities valid.
const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile(entitySchema)

/** Whether the value has the JSON form of an entity. `entityFromJson` checks its values. */
export function isEntityJson(value: unknown): boolean {
  return validate(value)
}

function schemaOfEntity(name: string, properties: PropertySchemas): SchemaObject {
  const isSigned = Object.hasOwn(relayables, name)
  const entries = Object.entries(isSigned ? { ...ofRelayables, ...properties } : properties)
  return {
    type: 'object',
    required: ['entity_type', 'entity_data', ...(isSigned ? ['property_order'] : [])],
    properties: {
      entity_type: { const: name },
      entity_data: {
        type: 'object',
        required: entries.filter(([key]) => key.endsWith('*')).map(([key]) => key.slice(0, -1)),
        properties: Object.fromEntries(entries.map(([key, schema]) => [key.replace('*', ''), schema])),
      },
      ...(isSigned && { property_order: { type: 'array', items: string } }),
    },
  }
}

function entityReference(name: string): SchemaObject {
  return { $ref: `#/$defs/${name}` }
}

function nullable(schema: SchemaObject): SchemaObject {
  return { anyOf: [{ type: 'null' }, schema] }
}
