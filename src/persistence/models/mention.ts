import type { Knex } from 'knex'
import { Model } from 'objection'

/** A person named in a post or in a comment: one of the two is set. */
export class Mention extends Model {
  static override tableName = 'mentions'

  declare id: number
  declare personId: number
  declare postId: number | null
  declare commentId: number | null
  /** When the post was written; null in a comment. */
  declare createdAt: Date | null

  /** Those of these people who are known here. */
  static async attach(transaction: Knex.Transaction, target: Mentioning, addresses: readonly string[]): Promise<void> {
    await this.attachToAll(transaction, [{ ...target, addresses }])
  }

  /** The same for any number of posts and comments. */
  static async attachToAll(
    transaction: Knex.Transaction,
    targets: readonly (Mentioning & { readonly addresses: readonly string[] })[],
  ): Promise<void> {
    const named = targets.filter(({ addresses }) => addresses.length > 0)
    if (named.length > 0) await transaction.raw(mentions, [JSON.stringify(named)])
  }
}

interface Mentioning {
  readonly postId?: number
  readonly commentId?: number
}

const mentions = `
  insert into mentions (person_id, post_id, comment_id, created_at)
  select people.id, target."postId", target."commentId", posts.created_at
  from json_to_recordset(?::json) as target("postId" bigint, "commentId" bigint, addresses json)
  cross join json_array_elements_text(target.addresses) as named(address)
  join people on people.address = named.address
  left join posts on posts.id = target."postId"
  order by target."postId", target."commentId", people.id
  on conflict do nothing`
