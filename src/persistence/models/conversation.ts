import { Model } from './model.js'
import { Person } from './person.js'

export class Conversation extends Model {
  static override tableName = 'conversations'
  /** Relations are also read in transactions, whose single connection runs one statement at a time. */
  static concurrency = 1

  declare id: number
  declare guid: string
  declare authorId: number
  declare subject: string
  declare createdAt: Date
  /** The arrival of the last message. */
  declare updatedAt: Date

  declare author?: Person
  declare messages?: ConversationMessage[]
  declare visibilities?: ConversationVisibility[]
  declare participants?: Person[]

  static override relationMappings = () => ({
    author: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'conversations.authorId', to: 'people.id' },
    },
    messages: {
      relation: Model.HasManyRelation,
      modelClass: ConversationMessage,
      join: { from: 'conversations.id', to: 'messages.conversationId' },
    },
    visibilities: {
      relation: Model.HasManyRelation,
      modelClass: ConversationVisibility,
      join: { from: 'conversations.id', to: 'conversation_visibilities.conversationId' },
    },
    participants: {
      relation: Model.ManyToManyRelation,
      modelClass: Person,
      join: {
        from: 'conversations.id',
        through: { from: 'conversation_visibilities.conversationId', to: 'conversation_visibilities.personId' },
        to: 'people.id',
      },
    },
  })
}

export class ConversationMessage extends Model {
  static override tableName = 'messages'

  declare id: number
  declare guid: string
  declare conversationId: number
  declare authorId: number
  declare text: string
  /** Time of creation, by the clock of the author's pod. */
  declare createdAt: Date
  declare arrivedAt: Date

  declare author?: Person

  static override relationMappings = () => ({
    author: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'messages.authorId', to: 'people.id' },
    },
  })
}

/** A participant who has not deleted the conversation. Both times are copies of the conversation's. */
export class ConversationVisibility extends Model {
  static override tableName = 'conversation_visibilities'
  static override idColumn = ['conversationId', 'personId']

  declare conversationId: number
  declare personId: number
  declare unread: number
  declare createdAt: Date
  declare updatedAt: Date
}
