import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { rowsAsColumns } from '../sql/rows-as-columns.js'

export const NO_COUNTS: Counts = { posts: [], comments: [], answers: [] }

/** Increments of the counters of a post. */
export interface PostCount {
  readonly guid: string
  readonly comments: number
  readonly likes: number
  readonly reshares: number
  /** When the latest of the comments arrived. */
  readonly latest: Date | undefined
}

/** An increment by guid. */
export interface CountByGuid {
  readonly guid: string
  readonly count: number
}

/** Votes for an answer. Guids of answers are unique within their poll only. */
export interface AnswerCount extends CountByGuid {
  readonly poll: string
}

export interface Counts {
  readonly posts: readonly PostCount[]
  readonly comments: readonly CountByGuid[]
  readonly answers: readonly AnswerCount[]
}

/** Raises all counters of a batch. */
export async function raiseCounts(transaction: Knex.Transaction, counts: Counts): Promise<void> {
  await queryPrepared(transaction, 'raised-counts', `with ${raiseCountsSql([])} select`, raiseCountsValues(counts))
}

/** Parameters of `raiseCountsSql`. */
export function raiseCountsValues({ posts, comments, answers }: Counts): readonly (readonly unknown[])[] {
  return [
    ...rowsAsColumns(posts, ['guid', 'comments', 'likes', 'reshares', 'latest']),
    ...rowsAsColumns(comments, ['guid', 'count']),
    ...rowsAsColumns(answers, ['guid', 'count', 'poll']),
  ]
}

/**
 * CTEs that raise the counters of a batch. Their parameters follow `precedingParameters`, those of the surrounding statement. Rows are
 * locked table by table in id order, so that two batches cannot deadlock. The CTEs belong at the end of a transaction, because counters
 * of hot posts are contended.
 */
export function raiseCountsSql(precedingParameters: readonly unknown[]): string {
  const first = precedingParameters.length + 1
  const column = (index: number, type: string) => `$${first + index}::${type}[]`
  const list = (index: number) => opaqueParam(`$${first + index}`, 'text[]')
  return `
  locked_posts as (
    select posts.id, fresh.comments, fresh.likes, fresh.reshares, fresh.latest
    from unnest(
      ${list(0)}, ${column(1, 'integer')}, ${column(2, 'integer')}, ${column(3, 'integer')}, ${column(4, 'timestamptz')}
    ) as fresh(guid, comments, likes, reshares, latest)
    join posts using (guid)
    order by posts.id for no key update of posts
  ), raised_posts as (
    update posts set
      comments_count = comments_count + fresh.comments,
      likes_count = likes_count + fresh.likes,
      reshares_count = reshares_count + fresh.reshares,
      interacted_at = greatest(interacted_at, fresh.latest)
    from locked_posts as fresh where posts.id = fresh.id
  ), locked_comments as (
    select comments.id, fresh.count
    from unnest(${list(5)}, ${column(6, 'integer')}) as fresh(guid, count)
    join comments using (guid)
    order by comments.id for no key update of comments
  ), raised_comments as (
    update comments set likes_count = likes_count + fresh.count
    from locked_comments as fresh where comments.id = fresh.id
  ), locked_answers as (
    select poll_answers.id, fresh.count
    from unnest(${list(7)}, ${column(8, 'integer')}, ${column(9, 'text')}) as fresh(guid, count, poll)
    join polls on polls.guid = fresh.poll
    join poll_answers on poll_answers.poll_id = polls.id and poll_answers.guid = fresh.guid
    order by poll_answers.id for no key update of poll_answers
  ), raised_answers as (
    update poll_answers set vote_count = vote_count + fresh.count
    from locked_answers as fresh where poll_answers.id = fresh.id
  )`
}
