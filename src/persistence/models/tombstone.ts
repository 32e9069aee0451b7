import { Model } from 'objection'
import { Person } from './person.js'

/** What was deleted, and by whom: whether that person was entitled to is known only when the thing arrives. */
export class Tombstone extends Model {
  static override tableName = 'tombstones'
  static override idColumn = ['targetType', 'guid', 'deletedById']

  declare targetType: string
  declare guid: string
  declare deletedById: number
  declare createdAt: Date

  declare deletedBy?: Person

  static override relationMappings = () => ({
    deletedBy: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'tombstones.deletedById', to: 'people.id' },
    },
  })
}
