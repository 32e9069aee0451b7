import { ProtocolError } from '../errors.js'
import { defineEntity, type EntityOf } from './define-entity.js'
import { required } from './properties.js'
import { address, guid, type ValueType } from './value-types.js'

/** What can be taken back. `Person` is the old way to stop sharing; all kinds of posts may be called by their own name. */
const targetTypes = [
  'Post',
  'StatusMessage',
  'Reshare',
  'Photo',
  'Comment',
  'Like',
  'PollParticipation',
  'Participation',
  'Poll',
  'Conversation',
  'Person',
] as const

export type TargetType = (typeof targetTypes)[number]

const targetType: ValueType<TargetType> = {
  kind: 'string',
  read(value) {
    if (value === '') return undefined
    const type = targetTypes.find((word) => word === value)
    if (type === undefined)
      throw new ProtocolError('UnknownEntity', `retraction: there is no ${value.slice(0, 64)} here`)
    return type
  },
  write: (value) => value,
}

/** `author` names the author of the target and gives no rights; it is the sender who must have them. */
export const retraction = defineEntity('retraction', {
  author: required(address),
  target_guid: required(guid),
  target_type: required(targetType),
})

export type RetractionEntity = EntityOf<typeof retraction>
