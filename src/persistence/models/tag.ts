import type { Knex } from 'knex'
import { changeRows } from '../database/database.js'
import { Model } from './model.js'
import { User } from './user.js'

/** A tag; its name is in lower case, without #. */
export class Tag extends Model {
  static override tableName = 'tags'

  declare id: number
  declare name: string
  /** The tag occurs in a public post, so that its name may be shown to all. */
  declare public: boolean

  declare followers?: User[]

  static override relationMappings = () => ({
    followers: {
      relation: Model.ManyToManyRelation,
      modelClass: User,
      join: { from: 'tags.id', through: { from: 'tag_followings.tagId', to: 'tag_followings.userId' }, to: 'users.id' },
    },
  })

  /** Attaches tags to a post or a comment, and inserts missing tags. */
  static async attach(transaction: Knex.Transaction, target: Tagged, names: readonly string[]): Promise<void> {
    await this.attachToAll(transaction, [{ ...target, names }])
  }

  /** Attaches tags to any number of posts and comments. */
  static async attachToAll(
    transaction: Knex.Transaction,
    targets: readonly (Tagged & { readonly names: readonly string[] })[],
  ): Promise<void> {
    const names = [...new Set(targets.flatMap((target) => target.names))].sort()
    if (names.length === 0) return
    const publicNames = new Set(targets.flatMap((target) => (target.isPublic ? target.names : [])))
    await this.insertMissing(transaction, names, publicNames)
    await transaction.raw(TAGGINGS_SQL, [JSON.stringify(targets)])
  }

  /** Follows a tag. False: the user follows it already. */
  static async follow(db: Knex, userId: number, name: string): Promise<boolean> {
    await this.insertMissing(db, [name])
    const rowCount = await changeRows(
      db,
      `insert into tag_followings (user_id, tag_id) select ?, id from tags where name = ? on conflict do nothing`,
      [userId, name],
    )
    return rowCount > 0
  }

  /** Unfollows a tag. False: the user did not follow it. */
  static async unfollow(db: Knex, userId: number, name: string): Promise<boolean> {
    return (await this.unfollowAll(db, userId, [name])) > 0
  }

  /** Unfollows tags, and returns how many the user has followed. */
  static async unfollowAll(db: Knex, userId: number, names: readonly string[]): Promise<number> {
    return changeRows(
      db,
      `delete from tag_followings using tags where tags.id = tag_id and user_id = ? and tags.name = any(?)`,
      [userId, [...names]],
    )
  }

  /** A statement of its own, so that the next one sees names that another transaction has inserted in the meantime. */
  private static async insertMissing(
    db: Knex,
    names: readonly string[],
    publicNames: ReadonlySet<string> = new Set(),
  ): Promise<void> {
    await db.raw(NEW_TAGS_SQL, [[...names], names.map((name) => publicNames.has(name))])
  }
}

/** The target of tags. The time is that of the post, even for a comment. */
interface Tagged {
  readonly postId?: number
  readonly commentId?: number
  readonly createdAt: Date
  /** The post, or that of the comment. */
  readonly isPublic: boolean
}

/** Only tags that are not public yet are updated, so that popular tags are not written again. */
const NEW_TAGS_SQL = `
  with input as (
    select name, public from unnest(?::text[], ?::boolean[]) as row(name, public)
  ), published as (
    update tags set public = true from input where tags.name = input.name and input.public and not tags.public
  )
  insert into tags (name, public) select name, public from input order by name on conflict do nothing`

const TAGGINGS_SQL = `
  insert into taggings (tag_id, post_id, comment_id, created_at)
  select tags.id, target."postId", target."commentId", target."createdAt"
  from json_to_recordset(?::json) as target(
    "postId" bigint, "commentId" bigint, "createdAt" timestamptz, names json
  )
  cross join json_array_elements_text(target.names) as named(name)
  join tags on tags.name = named.name
  order by target."postId", target."commentId", tags.id
  on conflict do nothing`
