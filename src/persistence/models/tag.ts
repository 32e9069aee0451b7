import { Model } from 'objection'
import { User } from './user.js'

/** Without #, lower case. */
export class Tag extends Model {
  static override tableName = 'tags'

  declare id: number
  declare name: string

  declare followers?: User[]

  static override relationMappings = () => ({
    followers: {
      relation: Model.ManyToManyRelation,
      modelClass: User,
      join: { from: 'tags.id', through: { from: 'tag_followings.tagId', to: 'tag_followings.userId' }, to: 'users.id' },
    },
  })
}
