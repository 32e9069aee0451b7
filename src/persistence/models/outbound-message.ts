import type { OutboundRecord, OutboundVerb } from '../outbound/outbound-record.js'
import { Delivery } from './delivery.js'
import { Model } from './model.js'
import { Person } from './person.js'

/** An outgoing message, stored once for all pods that receive it. */
export class OutboundMessage extends Model {
  static override tableName = 'outbound_messages'

  declare id: number
  /** `unknown`: of a job of a pod that was taken over. */
  declare record: OutboundRecord | 'unknown'
  declare guid: string
  declare verb: OutboundVerb
  /** The local person whose key signs. Null: the account of the pod. */
  declare senderId: number | null
  declare public: boolean
  /** The payload, which never changes. */
  declare entity: string
  /** Null until a first delivery needs it. */
  declare envelope: string | null
  /** Guid of the entity that it refers to. */
  declare about: string | null
  /** Number of deliveries ever created; successful ones are deleted. */
  declare sentTo: number
  declare createdAt: Date

  declare sender?: Person
  declare deliveries?: Delivery[]

  static override relationMappings = () => ({
    sender: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'outbound_messages.senderId', to: 'people.id' },
    },
    deliveries: {
      relation: Model.HasManyRelation,
      modelClass: Delivery,
      join: { from: 'outbound_messages.id', to: 'deliveries.messageId' },
    },
  })
}
