import type { Knex } from 'knex'
import { Model } from './model.js'
import { Person } from './person.js'
import { Post } from './post.js'

export class Photo extends Model {
  static override tableName = 'photos'

  declare id: number
  declare guid: string
  declare authorId: number
  declare postId: number | null
  /** Guid of the post of a received photo, while that post is not stored. */
  declare postGuid: string | null
  /** Position among the photos of its post. */
  declare position: number
  declare public: boolean
  /** Uploaded and not yet used in a post. */
  declare pending: boolean
  declare text: string | null
  /** Base URL of the sizes; null: a local photo. */
  declare remotePath: string | null
  declare name: string
  declare height: number | null
  declare width: number | null
  /** Total size of its files on this pod. */
  declare bytes: number
  declare createdAt: Date

  declare author?: Person
  declare post?: Post | null

  /** Attaches photos to a post in this order. They become public if the post is. */
  static async attachToPost(
    transaction: Knex.Transaction,
    photos: readonly Pick<Photo, 'id'>[],
    post: Pick<Post, 'id' | 'public'>,
  ): Promise<void> {
    if (photos.length === 0) return
    await transaction.raw(JOINED_PHOTOS_SQL, [post.id, post.public, photos.map(({ id }) => id)])
  }

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

const JOINED_PHOTOS_SQL = `
  update photos set post_id = ?, public = ?, pending = false, position = joining.ordinal - 1
  from unnest(?::bigint[]) with ordinality as joining (id, ordinal)
  where photos.id = joining.id`
