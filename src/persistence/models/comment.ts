import { Like } from './like.js'
import { Model } from './model.js'
import { Person } from './person.js'
import { Post } from './post.js'

/** Name and text of every element its author signed, known or not, exactly as received and in that order. */
export type SignedElements = readonly (readonly [name: string, text: string])[]

export class Comment extends Model {
  static override tableName = 'comments'
  static override jsonAttributes = ['signedElements']

  declare id: number
  declare guid: string
  /** The id of the request that wrote it. */
  declare traceId: string | null
  declare postId: number
  declare authorId: number
  declare text: string
  declare likesCount: number
  /** Only its author reads a hidden comment. It is not counted. */
  declare hidden: boolean
  declare authorSignature: string | null
  declare signedElements: SignedElements | null
  declare createdAt: Date
  /** Creation time of the post, set for comments by local people. */
  declare postCreatedAt: Date | null

  declare post?: Post
  declare author?: Person
  declare likes?: Like[]
  declare mentionedPeople?: Person[]

  static override relationMappings = () => ({
    post: {
      relation: Model.BelongsToOneRelation,
      modelClass: Post,
      join: { from: 'comments.postId', to: 'posts.id' },
    },
    author: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'comments.authorId', to: 'people.id' },
    },
    likes: {
      relation: Model.HasManyRelation,
      modelClass: Like,
      join: { from: 'comments.id', to: 'likes.commentId' },
    },
    mentionedPeople: {
      relation: Model.ManyToManyRelation,
      modelClass: Person,
      join: { from: 'comments.id', through: { from: 'mentions.commentId', to: 'mentions.personId' }, to: 'people.id' },
    },
  })
}
