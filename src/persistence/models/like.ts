import type { SignedElements } from './comment.js'
import { Model } from './model.js'
import { Person } from './person.js'

/** A like of a post or of a comment: one of the two ids is set. */
export class Like extends Model {
  static override tableName = 'likes'
  static override jsonAttributes = ['signedElements']

  declare id: number
  declare guid: string
  /** The id of the request that wrote it. */
  declare traceId: string | null
  declare authorId: number
  declare postId: number | null
  declare commentId: number | null
  /** False: a dislike, which is not counted. */
  declare positive: boolean
  declare authorSignature: string | null
  declare signedElements: SignedElements | null
  declare createdAt: Date
  /** Creation time of the post, set for likes of posts by local people. */
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
