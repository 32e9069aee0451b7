import type { Knex } from 'knex'
import type { QueryBuilder } from 'objection'
import { queryPrepared, queryRows } from '../database/database.js'
import { isAuthorUnblockedSql, isReadableBySql } from '../posts/visibility.js'
import { Aspect } from './aspect.js'
import { Comment } from './comment.js'
import { Like } from './like.js'
import { Model } from './model.js'
import { Participation } from './participation.js'
import { Person } from './person.js'
import { Photo } from './photo.js'
import { Poll } from './poll.js'
import { Tag } from './tag.js'
import { User } from './user.js'

export type PostType = 'StatusMessage' | 'Reshare'

export class Post extends Model {
  static override tableName = 'posts'
  /** Relations are also read in transactions, whose single connection runs one statement at a time. */
  static concurrency = 1
  static override jsonAttributes = ['embed']

  declare id: number
  declare guid: string
  /** The id of the request that wrote it. */
  declare traceId: string | null
  declare authorId: number
  declare type: PostType
  declare public: boolean
  /** Null: the post is not hidden. Otherwise whether it was public. */
  declare publicBeforeHiding: boolean | null
  /** Empty for a reshare. */
  declare text: string
  declare providerDisplayName: string | null
  declare embed: Record<string, unknown> | null
  /** The reshared post, which may be a reshare itself; null after its deletion. */
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
  /** Private posts: local users who received it. */
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

  /** Whether other pods know the post as public. A hidden post is not public here. */
  static isSentPublicly({
    public: isPublic,
    publicBeforeHiding,
  }: Pick<Post, 'public'> & Partial<Pick<Post, 'publicBeforeHiding'>>): boolean {
    return publicBeforeHiding ?? isPublic
  }

  /** Finds a post that the user may read: public, their own, or delivered to them. */
  static findReadable(
    db: Knex,
    { userId, personId }: { readonly userId: number; readonly personId: number },
    guid: string,
  ): QueryBuilder<Post, Post | undefined> {
    return this.query(db)
      .findOne({ 'posts.guid': guid })
      .whereRaw(isAuthorUnblockedSql('posts.author_id'))
      .whereRaw(isReadableBySql('?', '?'), [personId, userId])
  }

  /**
   * Locks posts in id order. Changes of likes, votes and participations take this lock first, as deletions do: they change several
   * tables in different orders and would deadlock otherwise.
   */
  static async lock(transaction: Knex.Transaction, ...ids: readonly number[]): Promise<void> {
    await queryPrepared(transaction, 'locked-posts', LOCKED_POSTS_SQL, [ids])
  }

  /** Finds the status message at the end of a chain of reshares. Undefined if it was deleted or the post is not a reshare. */
  static async findRoot(db: Knex, { id }: Pick<Post, 'id'>): Promise<Post | undefined> {
    const rootId = (await this.findRootIds(db, [id])).get(id)
    return rootId === undefined ? undefined : this.query(db).findById(rootId)
  }

  /** The ids of the roots of reshares, by the id of the reshare; without those that were deleted. */
  static async findRootIds(db: Knex, ids: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const rows = await queryRows<{ readonly reshare: number; readonly root: number }>(db, ROOTS_SQL, [[...ids]])
    return new Map(rows.map(({ reshare, root }) => [reshare, root]))
  }

  /** Makes a private post and its photos visible to the local members of these aspects. */
  static async shareWith(transaction: Knex.Transaction, postId: number, aspectIds: readonly number[]): Promise<void> {
    for (const statement of sharePost) await transaction.raw(statement, { postId, aspectIds: [...aspectIds] })
  }
}

const LOCKED_POSTS_SQL = 'select id from posts where id = any($1::bigint[]) order by id for no key update'

/** Other pods send reshares of reshares. The depth is limited, so that a cycle cannot run forever. */
const ROOTS_SQL = `
  with recursive chain as (
    select id as reshare, id, root_id, type, 0 as depth from posts where id = any(?::bigint[])
    union all
    select chain.reshare, posts.id, posts.root_id, posts.type, depth + 1
    from posts join chain on posts.id = chain.root_id where depth < 20
  )
  select reshare, id as root from chain where type = 'StatusMessage' and depth > 0`

/** Query for the local users in aspects, for use in other statements. */
export const LOCAL_ASPECT_MEMBERS_SQL = `
  select distinct users.id from aspect_memberships
  join contacts on contacts.id = aspect_memberships.contact_id
  join users on users.person_id = contacts.person_id and users.closed_at is null
  where aspect_memberships.aspect_id = any(:aspectIds)`

// Written with cast(): knex would parse `:name::type` as an identifier binding.
const sharePost = [
  `insert into post_aspects (post_id, aspect_id) select cast(:postId as bigint), unnest(cast(:aspectIds as bigint[]))`,
  `insert into photo_aspects (photo_id, aspect_id)
   select photos.id, aspects.id from photos, unnest(cast(:aspectIds as bigint[])) as aspects (id)
   where photos.post_id = :postId`,
  `insert into post_visibilities (user_id, post_id, author_id, created_at)
   select members.id, posts.id, posts.author_id, posts.created_at
   from (${LOCAL_ASPECT_MEMBERS_SQL}) as members join posts on posts.id = :postId`,
  `insert into photo_visibilities (user_id, photo_id)
   select members.id, photos.id from (${LOCAL_ASPECT_MEMBERS_SQL}) as members, photos where photos.post_id = :postId`,
]

export class Location extends Model {
  static override tableName = 'locations'
  static override idColumn = 'postId'

  declare postId: number
  declare address: string
  declare lat: string
  declare lng: string
}
