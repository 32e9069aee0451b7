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
  /** What its sizes take on the disk of this pod. */
  declare bytes: number
  declare createdAt: Date

  declare author?: Person
  declare post?: Post | null

  /** They become part of a post in this order, and are for everybody if the post is. */
  static async attachToPost(
    transaction: Knex.Transaction,
    photos: readonly Pick<Photo, 'id'>[],
    post: Pick<Post, 'id' | 'public'>,
  ): Promise<void> {
    if (photos.length === 0) return
    await transaction.raw(joined, [post.id, post.public, photos.map(({ id }) => id)])
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

const joined = `
  update photos set post_id = ?, public = ?, pending = false, position = joining.place - 1
  from unnest(?::bigint[]) with ordinality as joining (id, place)
  where photos.id = joining.id`
