import { defineEntity, type EntityOf } from './define-entity.js'
import { createdAt, optional, required } from './properties.js'
import { address, flag, guid, oneOf, text, timestamp } from './value-types.js'

/** Stored as received; it is verified only where it is required (FEDERATION.md, "Relayables"). */
const signature = optional(text())

const comment = defineEntity('comment', {
  author: required(address),
  guid: required(guid),
  parent_guid: required(guid),
  text: required(text()),
  created_at: createdAt,
  edited_at: optional(timestamp),
  author_signature: signature,
})

const like = defineEntity('like', {
  author: required(address),
  guid: required(guid),
  parent_guid: required(guid),
  parent_type: required(oneOf('Post', 'Comment')),
  positive: required(flag),
  author_signature: signature,
})

const pollParticipation = defineEntity('poll_participation', {
  author: required(address),
  guid: required(guid),
  parent_guid: required(guid),
  poll_answer_guid: required(guid),
  author_signature: signature,
})

/** Verified like any relayable, but not stored: no pod of the network stores it. */
const eventParticipation = defineEntity('event_participation', {
  author: required(address),
  guid: required(guid),
  parent_guid: required(guid),
  status: required(oneOf('accepted', 'declined', 'tentative')),
  edited_at: optional(timestamp),
  author_signature: signature,
})

/** Not a relayable: it subscribes the sender's pod to the relayables of a post. */
export const participation = defineEntity('participation', {
  author: required(address),
  guid: required(guid),
  parent_guid: required(guid),
  parent_type: required(oneOf('Post')),
})

/**
 * The elements that the author of a relayable signed: names and exact texts in the order of sending, unknown ones included,
 * signatures excluded.
 */
export type Elements = readonly (readonly [name: string, text: string])[]

/** Set on received relayables; local ones are signed in the order of the table. */
interface Signed {
  readonly elements?: Elements
}

/** @public */
export type CommentEntity = EntityOf<typeof comment> & Signed
/** @public */
export type LikeEntity = EntityOf<typeof like> & Signed
/** @public */
export type PollParticipationEntity = EntityOf<typeof pollParticipation> & Signed
type EventParticipationEntity = EntityOf<typeof eventParticipation> & Signed
export type Relayable = CommentEntity | LikeEntity | PollParticipationEntity | EventParticipationEntity
export type ParticipationEntity = EntityOf<typeof participation>

export const relayables = {
  comment,
  like,
  poll_participation: pollParticipation,
  event_participation: eventParticipation,
} as const satisfies { readonly [Type in Relayable['type']]: { readonly name: Type } }
