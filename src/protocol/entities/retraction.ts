import { ProtocolError } from '../errors.js'
import { defineEntity, type EntityOf } from './define-entity.js'
import { required } from './properties.js'
import { address, guid, type ValueType } from './value-types.js'

/** Types that can be retracted. `Person` is the old way to stop sharing; posts may be named by their subtype. */
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
      throw new ProtocolError('UnknownEntity', `retraction: unknown target type ${value.slice(0, 64)}`)
    return type
  },
  write: (value) => value,
}

/** `author` names the author of the target and grants no rights: the rights of the sender decide. */
export const retraction = defineEntity('retraction', {
  author: required(address),
  target_guid: required(guid),
  target_type: required(targetType),
})

export type RetractionEntity = EntityOf<typeof retraction>
