import { isUrlWithHost, isUrlWithHostAndPath } from '../values.js'
import { defineEntity, type EntityOf } from './define-entity.js'
import { event } from './events.js'
import { location } from './location.js'
import { createdAt, listOf, nested, optional, required, withDefaultIfMissing } from './properties.js'
import { address, anyText, flag, guid, integer, text, textWhere, timestamp, urlWithPath } from './value-types.js'

export const photo = defineEntity('photo', {
  guid: required(guid),
  author: required(address),
  public: withDefaultIfMissing(flag, false),
  created_at: createdAt,
  edited_at: optional(timestamp),
  remote_photo_path: required(urlWithPath),
  remote_photo_name: required(text(255)),
  text: optional(text()),
  status_message_guid: optional(guid),
  height: optional(integer),
  width: optional(integer),
})

export const pollAnswer = defineEntity('poll_answer', {
  guid: required(guid),
  answer: required(text(255)),
})

export const poll = defineEntity('poll', {
  guid: required(guid),
  question: required(text(255)),
  poll_answers: listOf(pollAnswer, { min: 2, max: 100 }),
})

export const embed = defineEntity(
  'embed',
  {
    url: optional(textWhere(isUrlWithHost, 'is not a URL with a host')),
    title: optional(text(255)),
    description: optional(text()),
    image: optional(textWhere(isUrlWithHostAndPath, 'is not a URL with a host and a path')),
    nothing: optional(flag),
  },
  (entity) =>
    (entity.url !== undefined) === (entity.nothing === true) ? 'needs either a url or nothing, not both' : undefined,
)

export const statusMessage = defineEntity(
  'status_message',
  {
    author: required(address),
    guid: required(guid),
    created_at: createdAt,
    public: withDefaultIfMissing(flag, false),
    provider_display_name: optional(text()),
    text: required(anyText),
    edited_at: optional(timestamp),
    photos: listOf(photo, { max: 100 }),
    location: nested(location),
    poll: nested(poll),
    event: nested(event),
    embed: nested(embed),
  },
  (entity) =>
    entity.photos.every(({ author }) => author === entity.author) ? undefined : 'has a photo of another author',
)

/** A reshare without root refers to a deleted post. */
export const reshare = defineEntity(
  'reshare',
  {
    author: required(address),
    guid: required(guid),
    created_at: createdAt,
    root_author: optional(address),
    root_guid: optional(guid),
  },
  (entity) =>
    (entity.root_author === undefined) === (entity.root_guid === undefined)
      ? undefined
      : 'root_author and root_guid go together',
)

export type PhotoEntity = EntityOf<typeof photo>
export type PollAnswerEntity = EntityOf<typeof pollAnswer>
export type PollEntity = EntityOf<typeof poll>
export type EmbedEntity = EntityOf<typeof embed>
export type StatusMessageEntity = EntityOf<typeof statusMessage>
export type ReshareEntity = EntityOf<typeof reshare>
