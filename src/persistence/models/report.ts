import { Comment } from './comment.js'
import { Model } from './model.js'
import { Post } from './post.js'
import { User } from './user.js'

/** A report of a user to the moderators. Post and comment are null for other things, and once they are deleted. */
export class Report extends Model {
  static override tableName = 'reports'

  declare id: number
  declare userId: number
  /** Null only in reports that an earlier version has stored during an upgrade. */
  declare caseId: number | null
  declare postId: number | null
  declare commentId: number | null
  declare reason: string
  declare createdAt: Date

  declare user?: User
  declare post?: Post | null
  declare comment?: Comment | null

  static override relationMappings = () => ({
    user: {
      relation: Model.BelongsToOneRelation,
      modelClass: User,
      join: { from: 'reports.userId', to: 'users.id' },
    },
    post: {
      relation: Model.BelongsToOneRelation,
      modelClass: Post,
      join: { from: 'reports.postId', to: 'posts.id' },
    },
    comment: {
      relation: Model.BelongsToOneRelation,
      modelClass: Comment,
      join: { from: 'reports.commentId', to: 'comments.id' },
    },
  })
}
