import { Model } from 'objection'
import { Person } from './person.js'

/** A person hears of what happens under a post. */
export class Participation extends Model {
  static override tableName = 'participations'

  declare id: number
  declare guid: string
  declare postId: number
  declare authorId: number
  /** How many subscriptions, comments, likes, votes and reshares hold it; it goes with the last. */
  declare count: number
  declare createdAt: Date

  declare author?: Person

  static override relationMappings = () => ({
    author: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'participations.authorId', to: 'people.id' },
    },
  })
}
