import type { SignedElements } from './comment.js'
import { Model } from './model.js'
import { Person } from './person.js'

/** Of a post or of a comment: one of the two is set. */
export class Like extends Model {
  static override tableName = 'likes'
  static override jsonAttributes = ['signedElements']

  declare id: number
  declare guid: string
  declare authorId: number
  declare postId: number | null
  declare commentId: number | null
  /** False: a dislike, which counts nowhere. */
  declare positive: boolean
  declare authorSignature: string | null
  declare signedElements: SignedElements | null
  declare createdAt: Date
  /** When the post was written, if that was liked by somebody who lives here. */
  declare postCreatedAt: Date | null

  declare author?: Person

  static override relationMappings = () => ({
    author: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'likes.authorId', to: 'people.id' },
    },
  })
}
