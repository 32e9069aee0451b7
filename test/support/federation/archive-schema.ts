import { Ajv, type SchemaObject, type ValidateFunction } from 'ajv'

/**
 * The form of archives that the importer of diaspora* accepts: which members it requires, and their types. Unknown members are allowed
 * everywhere. It is written from the facts of version 2.0 and proven with an archive that diaspora* has made.
 */
export function compileArchiveSchema(): ValidateFunction {
  return new Ajv({ allErrors: true, strict: false }).compile(archive)
}

const text = { type: 'string' }
const flag = { type: 'boolean' }
const textOrNull = { type: ['string', 'null'] }
const guid = { type: 'string', minLength: 16, maxLength: 255 }
const signature = { anyOf: [{ type: 'string', minLength: 30 }, { const: '' }] }

type Members = Readonly<Record<string, SchemaObject>>

function object(required: Members, optional: Members = {}): SchemaObject {
  return { type: 'object', properties: { ...required, ...optional }, required: Object.keys(required) }
}

function list(items: SchemaObject): SchemaObject {
  return { type: 'array', items }
}

function entity(type: string, required: Members, optional: Members = {}): SchemaObject {
  return object({ entity_type: { const: type }, entity_data: object(required, optional) })
}

function relayable(type: string, required: Members, optional: Members = {}): SchemaObject {
  const common = { author: text, guid, parent_guid: guid }
  const item = entity(type, { ...common, ...required }, { author_signature: signature, ...optional })
  return { allOf: [item, object({ property_order: list(text) })] }
}

const photo = entity(
  'photo',
  {
    author: text,
    guid,
    public: flag,
    created_at: text,
    remote_photo_path: text,
    remote_photo_name: text,
    width: { type: 'number' },
    height: { type: 'number' },
  },
  { text: textOrNull, status_message_guid: guid },
)

const poll = entity('poll', {
  guid,
  question: text,
  poll_answers: list(entity('poll_answer', { guid, answer: text })),
})

const location = entity('location', { address: text, lat: text, lng: text })

/** The importer reads `photos` of each post, so that it needs an array, although the schema of diaspora* does not require one. */
const statusMessage = entity(
  'status_message',
  { guid, public: flag, created_at: text, text, photos: list(photo) },
  { provider_display_name: text, location, poll },
)

const reshare = entity('reshare', { author: text, guid, created_at: text, root_author: text, root_guid: guid })

/** Exactly one of these describes a post: a reshare that says `public: true` matches two, and is refused. */
const recipients = {
  oneOf: [
    object({ subscribed_pods_uris: list(text), entity_data: object({ public: { const: true } }) }),
    object({ subscribed_users_ids: list(text), entity_data: object({ public: { const: false } }) }),
    object({ subscribed_pods_uris: list(text), entity_type: { const: 'reshare' } }),
  ],
}

const relayables = list({
  oneOf: [
    relayable('comment', { text }, { created_at: text }),
    relayable('like', { positive: flag }, { parent_type: { enum: ['Post', 'Comment'] } }),
    relayable('poll_participation', { poll_answer_guid: guid }),
  ],
})

const profile = entity(
  'profile',
  { author: text },
  Object.fromEntries(
    ['first_name', 'last_name', 'gender', 'bio', 'birthday', 'location', 'image_url'].map((name) => [name, textOrNull]),
  ),
)

const contact = object(
  {
    sharing: flag,
    following: flag,
    receiving: flag,
    followed: flag,
    account_id: text,
    contact_groups_membership: list(text),
  },
  { person_name: text, person_guid: guid, public_key: text },
)

const archive = object(
  {
    version: { const: '2.0' },
    user: object(
      { username: text, email: text, private_key: text, profile },
      {
        language: text,
        disable_mail: flag,
        show_community_spotlight_in_stream: flag,
        auto_follow_back: flag,
        auto_follow_back_aspect: textOrNull,
        strip_exif: flag,
        blocks: list(text),
        contact_groups: list(object({ name: text })),
        contacts: list(contact),
        posts: list({ allOf: [{ oneOf: [statusMessage, reshare] }, recipients] }),
        relayables,
        followed_tags: list(text),
        post_subscriptions: list(guid),
      },
    ),
  },
  { others_data: object({}, { relayables }) },
)
