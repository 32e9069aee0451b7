import { Model } from 'objection'
import { Aspect } from './aspect.js'
import { Comment } from './comment.js'
import { Like } from './like.js'
import { Participation } from './participation.js'
import { Person } from './person.js'
import { Photo } from './photo.js'
import { Poll } from './poll.js'
import { Tag } from './tag.js'
import { User } from './user.js'

export type PostType = 'StatusMessage' | 'Reshare'

export class Post extends Model {
  static override tableName = 'posts'
  static override jsonAttributes = ['embed']

  declare id: number
  declare guid: string
  declare authorId: number
  declare type: PostType
  declare public: boolean
  /** Empty for a reshare. */
  declare text: string
  declare providerDisplayName: string | null
  declare embed: Record<string, unknown> | null
  /** What a reshare shows, which may be a reshare; null once it is gone. */
  declare rootId: number | null
  declare commentsCount: number
  declare likesCount: number
  declare resharesCount: number
  /** When it was written or last commented on. */
  declare interactedAt: Date
  declare createdAt: Date

  declare author?: Person
  declare root?: Post | null
  declare reshares?: Post[]
  declare photos?: Photo[]
  declare location?: Location | null
  declare poll?: Poll | null
  declare comments?: Comment[]
  declare likes?: Like[]
  declare participations?: Participation[]
  declare tags?: Tag[]
  declare mentionedPeople?: Person[]
  /** Private posts: the author's aspects it was shared with. */
  declare aspects?: Aspect[]
  /** Private posts: the local people it was delivered to. */
  declare readers?: User[]

  static override relationMappings = () => ({
    author: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'posts.authorId', to: 'people.id' },
    },
    root: {
      relation: Model.BelongsToOneRelation,
      modelClass: Post,
      join: { from: 'posts.rootId', to: 'posts.id' },
    },
    reshares: {
      relation: Model.HasManyRelation,
      modelClass: Post,
      join: { from: 'posts.id', to: 'posts.rootId' },
    },
    photos: {
      relation: Model.HasManyRelation,
      modelClass: Photo,
      join: { from: 'posts.id', to: 'photos.postId' },
    },
    location: {
      relation: Model.HasOneRelation,
      modelClass: Location,
      join: { from: 'posts.id', to: 'locations.postId' },
    },
    poll: {
      relation: Model.HasOneRelation,
      modelClass: Poll,
      join: { from: 'posts.id', to: 'polls.postId' },
    },
    comments: {
      relation: Model.HasManyRelation,
      modelClass: Comment,
      join: { from: 'posts.id', to: 'comments.postId' },
    },
    likes: {
      relation: Model.HasManyRelation,
      modelClass: Like,
      join: { from: 'posts.id', to: 'likes.postId' },
    },
    participations: {
      relation: Model.HasManyRelation,
      modelClass: Participation,
      join: { from: 'posts.id', to: 'participations.postId' },
    },
    tags: {
      relation: Model.ManyToManyRelation,
      modelClass: Tag,
      join: { from: 'posts.id', through: { from: 'taggings.postId', to: 'taggings.tagId' }, to: 'tags.id' },
    },
    mentionedPeople: {
      relation: Model.ManyToManyRelation,
      modelClass: Person,
      join: { from: 'posts.id', through: { from: 'mentions.postId', to: 'mentions.personId' }, to: 'people.id' },
    },
    aspects: {
      relation: Model.ManyToManyRelation,
      modelClass: Aspect,
      join: {
        from: 'posts.id',
        through: { from: 'post_aspects.postId', to: 'post_aspects.aspectId' },
        to: 'aspects.id',
      },
    },
    readers: {
      relation: Model.ManyToManyRelation,
      modelClass: User,
      join: {
        from: 'posts.id',
        through: { from: 'post_visibilities.postId', to: 'post_visibilities.userId' },
        to: 'users.id',
      },
    },
  })
}

export class Location extends Model {
  static override tableName = 'locations'
  static override idColumn = 'postId'

  declare postId: number
  declare address: string
  declare lat: string
  declare lng: string
}
