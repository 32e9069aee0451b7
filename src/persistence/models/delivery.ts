import { Model } from './model.js'
import { OutboundMessage } from './outbound-message.js'
import { Person } from './person.js'
import { Pod } from './pod.js'

/** A pending delivery of a message to a pod, or to a person on it. It is deleted on success. */
export class Delivery extends Model {
  static override tableName = 'deliveries'

  declare id: number
  declare messageId: number
  declare podId: number
  /** Null: public, for all people of the pod. */
  declare personId: number | null
  declare state: 'waiting' | 'dead'
  declare attempts: number
  declare dueAt: Date
  declare lastStatus: number | null
  declare lastFault: string | null
  /** The encrypted bytes after a failed attempt. Every retry sends the same bytes. */
  declare encryptedEnvelope: string | null
  declare diedAt: Date | null
  declare createdAt: Date

  declare message?: OutboundMessage
  declare pod?: Pod
  declare person?: Person | null

  static override relationMappings = () => ({
    message: {
      relation: Model.BelongsToOneRelation,
      modelClass: OutboundMessage,
      join: { from: 'deliveries.messageId', to: 'outbound_messages.id' },
    },
    pod: {
      relation: Model.BelongsToOneRelation,
      modelClass: Pod,
      join: { from: 'deliveries.podId', to: 'pods.id' },
    },
    person: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'deliveries.personId', to: 'people.id' },
    },
  })
}
