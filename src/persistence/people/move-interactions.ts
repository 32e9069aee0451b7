import type { Knex } from 'knex'
import type { MoveLimits } from './limits.js'

export type PersonMove = {
  readonly from: number
  readonly to: number
}

/** Rows that stay when an account closes, so that they can also be moved afterwards. Their number has no bound. */
interface MovedTable {
  readonly table: 'comments' | 'likes' | 'poll_participations' | 'notification_actors'
  readonly person: 'author_id' | 'person_id'
  /** The column of `ids`, which with the person names one row. */
  readonly key: 'id' | 'notification_id'
  /** Deletes rows of the chunk that the other person also has, and corrects counters. */
  readonly deleteDuplicates: readonly string[]
}

const TABLES: readonly MovedTable[] = [
  { table: 'comments', person: 'author_id', key: 'id', deleteDuplicates: [] },
  {
    table: 'likes',
    person: 'author_id',
    key: 'id',
    deleteDuplicates: (['post', 'comment'] as const).map(
      (target) => `
        with duplicates as (
          delete from likes as old using likes as new
          where old.author_id = :from and old.id = any(:ids) and new.author_id = :to and new.${target}_id = old.${target}_id
          returning old.${target}_id as id, old.positive and not old.hidden as counted
        ), locked as (
          select id from ${target}s where id in (select id from duplicates where counted) order by id for no key update
        )
        update ${target}s set likes_count = greatest(0, likes_count - 1) from locked where ${target}s.id = locked.id`,
    ),
  },
  {
    table: 'poll_participations',
    person: 'author_id',
    key: 'id',
    deleteDuplicates: [
      `with duplicates as (
         delete from poll_participations as old using poll_participations as new
         where old.author_id = :from and old.id = any(:ids) and new.author_id = :to and new.poll_id = old.poll_id
         returning old.poll_answer_id as id
       ), locked as (
         select id from poll_answers where id in (select id from duplicates) order by id for no key update
       )
       update poll_answers set vote_count = greatest(0, vote_count - 1) from locked where poll_answers.id = locked.id`,
    ],
  },
  {
    table: 'notification_actors',
    person: 'person_id',
    key: 'notification_id',
    deleteDuplicates: [
      `delete from notification_actors as old using notification_actors as new
       where old.person_id = :from and old.notification_id = any(:ids) and new.person_id = :to
         and new.notification_id = old.notification_id`,
    ],
  },
]

/** Keeps the local account whose key can sign a row that has no signature: two accounts may move to one person. */
const WRITER_SQL = `, written_by_id = case when author_signature is null then coalesce(
    written_by_id, (select people.id from people where people.id = :from and pod_id is null)
  ) end`

/** The copies of the times of posts, by which a local person finds what they have written or liked. */
const POST_TIMES_SQL: Partial<Record<MovedTable['table'], string>> = {
  comments: postTimesSql('comments', 'comments.id = any(:ids)'),
  likes: postTimesSql('likes', 'likes.id = any(:ids)'),
}

/** Sets the copies of rows that `condition` selects, where the new author is a local person. */
export function postTimesSql(table: 'comments' | 'likes', condition: string): string {
  return `
    update ${table} set post_created_at = posts.created_at
    from posts, users
    where ${condition} and users.person_id = :to and posts.id = ${table}.post_id and ${table}.post_created_at is null`
}

/** Moves interactions of one person to another, in statements of bounded size. Returns false if some remain beyond the limit. */
export async function moveInteractions(
  transaction: Knex.Transaction,
  { from, to }: PersonMove,
  { rowsWithAccount, rowsPerChunk }: MoveLimits,
): Promise<boolean> {
  let remainingRows = rowsWithAccount
  for (const { table, person, key, deleteDuplicates } of TABLES) {
    for (;;) {
      const ids: number[] = await transaction(table)
        .where(person, from)
        .limit(Math.min(rowsPerChunk, remainingRows))
        .pluck(key)
      if (ids.length === 0) break
      const values = { ids, from, to }
      for (const statement of deleteDuplicates) await transaction.raw(statement, values)
      const writer = table === 'notification_actors' ? '' : WRITER_SQL
      await transaction.raw(
        `update ${table} set ${person} = :to${writer} where ${person} = :from and ${key} = any(:ids)`,
        values,
      )
      const postTimes = POST_TIMES_SQL[table]
      if (postTimes !== undefined) await transaction.raw(postTimes, values)
      remainingRows -= ids.length
      if (remainingRows <= 0) return false
    }
  }
  return true
}

/** Locks the people of a move, so that neither moves on meanwhile. */
export async function lockMove(transaction: Knex.Transaction, { from, to }: PersonMove): Promise<void> {
  await transaction('people').whereIn('id', [from, to]).orderBy('id').forShare().select('id')
}
