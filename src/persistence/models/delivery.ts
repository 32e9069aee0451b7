import { Model } from './model.js'
import { OutboundMessage } from './outbound-message.js'
import { Person } from './person.js'
import { Pod } from './pod.js'

/** An envelope that has not yet reached a pod, or a person on it; gone once it has. */
export class Delivery extends Model {
  static override tableName = 'deliveries'

  declare id: number
  declare messageId: number
  declare podId: number
  /** Null: public, for everybody on the pod. */
  declare personId: number | null
  declare state: 'waiting' | 'dead'
  declare attempts: number
  declare dueAt: Date
  declare lastStatus: number | null
  declare lastFault: string | null
  /** The encrypted bytes, once a first try has failed: every retry sends the same. */
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
