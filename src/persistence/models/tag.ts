import type { Knex } from 'knex'
import { Model } from './model.js'
import { User } from './user.js'

/** Without #, lower case. */
export class Tag extends Model {
  static override tableName = 'tags'

  declare id: number
  declare name: string

  declare followers?: User[]

  static override relationMappings = () => ({
    followers: {
      relation: Model.ManyToManyRelation,
      modelClass: User,
      join: { from: 'tags.id', through: { from: 'tag_followings.tagId', to: 'tag_followings.userId' }, to: 'users.id' },
    },
  })

  /** Files a post or a comment under these names; those nobody has used before are made. */
  static async attach(transaction: Knex.Transaction, target: Tagged, names: readonly string[]): Promise<void> {
    await this.attachToAll(transaction, [{ ...target, names }])
  }

  /** The same for any number of posts and comments. */
  static async attachToAll(
    transaction: Knex.Transaction,
    targets: readonly (Tagged & { readonly names: readonly string[] })[],
  ): Promise<void> {
    const names = [...new Set(targets.flatMap((target) => target.names))].sort()
    if (names.length === 0) return
    await this.make(transaction, names)
    await transaction.raw(taggings, [JSON.stringify(targets)])
  }

  /** Whether it is new that the user follows it. */
  static async follow(db: Knex, userId: number, name: string): Promise<boolean> {
    await this.make(db, [name])
    const { rowCount } = await db.raw(
      `insert into tag_followings (user_id, tag_id) select ?, id from tags where name = ? on conflict do nothing`,
      [userId, name],
    )
    return rowCount > 0
  }

  /** Whether the user has followed it until now. */
  static async unfollow(db: Knex, userId: number, name: string): Promise<boolean> {
    const { rowCount } = await db.raw(
      `delete from tag_followings using tags where tags.id = tag_id and user_id = ? and tags.name = ?`,
      [userId, name],
    )
    return rowCount > 0
  }

  /** Only a later statement sees a name which somebody else has made in the meantime. */
  private static async make(db: Knex, names: readonly string[]): Promise<void> {
    await db.raw(`insert into tags (name) select unnest(?::text[]) on conflict do nothing`, [[...names]])
  }
}

/** The time is that of the post, also for a comment. */
interface Tagged {
  readonly postId?: number
  readonly commentId?: number
  readonly createdAt: Date
}

const taggings = `
  insert into taggings (tag_id, post_id, comment_id, created_at)
  select tags.id, target."postId", target."commentId", target."createdAt"
  from json_to_recordset(?::json) as target(
    "postId" bigint, "commentId" bigint, "createdAt" timestamptz, names json
  )
  cross join json_array_elements_text(target.names) as named(name)
  join tags on tags.name = named.name
  order by target."postId", target."commentId", tags.id
  on conflict do nothing`
