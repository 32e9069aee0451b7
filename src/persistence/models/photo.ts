import { Model } from 'objection'
import { Person } from './person.js'
import { Post } from './post.js'

export class Photo extends Model {
  static override tableName = 'photos'

  declare id: number
  declare guid: string
  declare authorId: number
  declare postId: number | null
  /** The post that a received photo names, while that post is not here. */
  declare postGuid: string | null
  /** Among the photos of its post. */
  declare position: number
  declare public: boolean
  /** Uploaded, and not yet part of anything. */
  declare pending: boolean
  declare text: string | null
  /** Where the sizes lie; null: on this pod. */
  declare remotePath: string | null
  declare name: string
  declare height: number | null
  declare width: number | null
  declare createdAt: Date

  declare author?: Person
  declare post?: Post | null

  static override relationMappings = () => ({
    author: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'photos.authorId', to: 'people.id' },
    },
    post: {
      relation: Model.BelongsToOneRelation,
      modelClass: Post,
      join: { from: 'photos.postId', to: 'posts.id' },
    },
  })
}
