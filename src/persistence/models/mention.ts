import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { Model } from './model.js'

/** A mention of a person in a post or in a comment: one of the two ids is set. */
export class Mention extends Model {
  static override tableName = 'mentions'

  declare id: number
  declare personId: number
  declare postId: number | null
  declare commentId: number | null
  /** Creation time of the post; null in a comment. */
  declare createdAt: Date | null

  /** Attaches mentions of known people. Unknown addresses are ignored. */
  static async attach(transaction: Knex.Transaction, target: Mentioning, addresses: readonly string[]): Promise<void> {
    await this.attachToAll(transaction, [{ ...target, addresses }])
  }

  /** Attaches mentions to any number of posts and comments. */
  static async attachToAll(
    transaction: Knex.Transaction,
    targets: readonly (Mentioning & { readonly addresses: readonly string[] })[],
  ): Promise<void> {
    const textsWithMentions = targets.filter(({ addresses }) => addresses.length > 0)
    if (textsWithMentions.length > 0) await transaction.raw(MENTIONS_SQL, [JSON.stringify(textsWithMentions)])
  }

  /** Finds the stored mentions of texts. */
  static async findAttached(transaction: Knex.Transaction, { posts, comments }: TextIds): Promise<readonly Attached[]> {
    return queryRows<Attached>(transaction, ATTACHED_MENTIONS_SQL, [[...posts], [...comments]])
  }

  /** Attaches mentions of a person who became known later. Deleted texts and a closed account are skipped. */
  static async attachPersonLater(
    transaction: Knex.Transaction,
    personId: number,
    { posts, comments }: TextIds,
  ): Promise<void> {
    await transaction.raw(LATE_MENTIONS_SQL, { personId, posts: [...posts], comments: [...comments] })
  }
}

/** Texts by the ids of their rows. */
export interface TextIds {
  readonly posts: readonly number[]
  readonly comments: readonly number[]
}

interface Attached {
  readonly kind: keyof TextIds
  readonly id: number
  readonly address: string
}

interface Mentioning {
  readonly postId?: number
  readonly commentId?: number
}

/** A text may name an old identity of a person who has moved. */
const MENTIONS_SQL = `
  insert into mentions (person_id, post_id, comment_id, created_at)
  select distinct on (target."postId", target."commentId", coalesce(newest.id, people.id))
    coalesce(newest.id, people.id), target."postId", target."commentId", posts.created_at
  from json_to_recordset(?::json) as target("postId" bigint, "commentId" bigint, addresses json)
  cross join json_array_elements_text(target.addresses) as named(address)
  join people on people.address = named.address
  left join lateral (
    with recursive step(id, depth) as (
      select new_person_id, 1 from account_migrations where old_person_id = people.id and people.closed_at is not null
      union
      select new_person_id, depth + 1 from step join account_migrations on old_person_id = step.id where depth < 100
    )
    select id from step order by depth desc limit 1
  ) as newest on true
  left join posts on posts.id = target."postId"
  order by target."postId", target."commentId", coalesce(newest.id, people.id)
  on conflict do nothing`

const ATTACHED_MENTIONS_SQL = `
  select 'posts' as kind, post_id as id, people.address
  from mentions join people on people.id = person_id where post_id = any(?)
  union all
  select 'comments', comment_id, people.address
  from mentions join people on people.id = person_id where comment_id = any(?)`

/** Locks the person and the texts, so that a simultaneous deletion waits and then deletes the mention too. */
const LATE_MENTIONS_SQL = `
  with person as (
    select id from people where id = :personId and closed_at is null for key share
  ), held_posts as (
    select id, created_at from posts where id = any(:posts) order by id for key share
  ), held_comments as (
    select id from comments where id = any(:comments) order by id for key share
  )
  insert into mentions (person_id, post_id, comment_id, created_at)
  select person.id, held_posts.id, null, held_posts.created_at from person cross join held_posts
  union all
  select person.id, null, held_comments.id, null from person cross join held_comments
  on conflict do nothing`
