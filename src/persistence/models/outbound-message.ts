import { Delivery } from './delivery.js'
import { Model } from './model.js'
import { Person } from './person.js'

/** One envelope that leaves this pod, however many pods it goes to. */
export class OutboundMessage extends Model {
  static override tableName = 'outbound_messages'

  declare id: number
  /** The kind of record it is about. */
  declare record: string
  declare guid: string
  /** Whether the record comes or goes. */
  declare verb: string
  /** Whose key signs. */
  declare senderId: number
  declare public: boolean
  /** The payload, which never changes again. */
  declare entity: string
  /** Null until a first delivery needs it. */
  declare envelope: string | null
  /** The guid of what it refers to. */
  declare about: string | null
  /** How many deliveries it has ever had; those that have arrived are gone. */
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
