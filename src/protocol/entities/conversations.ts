import { isAddress } from '../address.js'
import { defineEntity, type EntityOf } from './define-entity.js'
import { createdAt, listOf, optional, required } from './properties.js'
import { address, guid, text, timestamp, type ValueType } from './value-types.js'

const minimum = 2
const maximum = 256

/** Addresses joined by `;`. A trailing `;` is accepted. */
const participants: ValueType<readonly string[]> = {
  kind: 'string',
  read: (value) => (value === '' ? undefined : value.replace(/;$/, '').split(';')),
  write: (value) => value.join(';'),
  problem(value) {
    if (value.length < minimum || value.length > maximum) return `are ${value.length}, not ${minimum} to ${maximum}`
    return value.every(isAddress) ? undefined : 'are not network IDs joined by semicolons'
  },
}

/** Not a relayable: the author sends it to every participant. */
export const message = defineEntity('message', {
  author: required(address),
  guid: required(guid),
  text: required(text()),
  created_at: createdAt,
  edited_at: optional(timestamp),
  conversation_guid: required(guid),
})

export const conversation = defineEntity(
  'conversation',
  {
    author: required(address),
    guid: required(guid),
    subject: required(text(255)),
    created_at: createdAt,
    participants: required(participants),
    messages: listOf(message, { max: 100 }),
  },
  (entity) =>
    entity.messages.every(({ author }) => author === entity.author) ? undefined : 'has a message of another author',
)

export type MessageEntity = EntityOf<typeof message>
export type ConversationEntity = EntityOf<typeof conversation>
