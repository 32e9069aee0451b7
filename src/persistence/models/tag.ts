import type { Knex } from 'knex'
import { Model } from 'objection'
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
    await transaction.raw(`insert into tags (name) select unnest(?::text[]) on conflict do nothing`, [names])
    // A statement of its own: only that sees a name which somebody else has made in the meantime.
    await transaction.raw(taggings, [JSON.stringify(targets)])
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
