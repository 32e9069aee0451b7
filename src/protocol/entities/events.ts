import { defineEntity, type EntityOf } from './define-entity.js'
import { location } from './location.js'
import { nested, optional, required, withDefaultIfMissing } from './properties.js'
import { address, flag, guid, text, textWhere, timestamp } from './value-types.js'

const zone = /^[A-Za-z_-]{0,14}(\/[A-Za-z_-]{0,14}){1,2}$/

/** Read inside posts, and verified as a message of its own, but not stored: no pod of the network stores events. */
export const event = defineEntity('event', {
  author: required(address),
  guid: required(guid),
  edited_at: optional(timestamp),
  summary: required(text(255)),
  description: optional(text()),
  start: required(timestamp),
  end: optional(timestamp),
  all_day: withDefaultIfMissing(flag, false),
  timezone: optional(textWhere((value) => zone.test(value), 'is not the name of a time zone')),
  location: nested(location),
})

export type EventEntity = EntityOf<typeof event>
