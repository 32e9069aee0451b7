import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { hideComments, hidePosts, unhideContentRows } from './hidden-content.js'

/** The position in the content of a person after the last changed row. */
interface ContentPosition {
  readonly step: ContentStep
  readonly afterTime: Date | null
  readonly afterId: number | null
  readonly afterSecondId: number | null
}

type ContentStep = (typeof STEPS)[number]

const STEPS = ['posts', 'comments', 'likes_of_posts', 'likes_of_comments'] as const

interface ContentRow {
  /** Id of the post or comment; for a like, of the liked post or comment. */
  readonly id: number
  readonly afterTime: Date | null
  readonly afterId: number
  readonly afterSecondId: number | null
}

/** Records that the block of these people has begun or ended. The caller has locked the people. */
export async function recordContentChanges(transaction: Knex.Transaction, personIds: readonly number[]): Promise<void> {
  if (personIds.length === 0) return
  await transaction.raw(
    `insert into person_content_changes (person_id) select unnest(cast(? as bigint[])) order by 1
     on conflict (person_id) do update set step = default, after_time = null, after_id = null, after_second_id = null`,
    [[...personIds]],
  )
}

/** Finds a person whose content has to be hidden or shown. */
export async function findContentChange(db: Knex): Promise<number | undefined> {
  const change = await db('person_content_changes').orderBy(['createdAt', 'personId']).first('personId')
  return change?.personId
}

/**
 * Hides or shows the next rows of a person, as their restriction says now. Returns the number of rows that were read; fewer than the
 * limit: nothing is left.
 */
export async function changeContentOfPerson(
  transaction: Knex.Transaction,
  personId: number,
  limit: number,
): Promise<number> {
  const person = await transaction('people').where({ id: personId }).forNoKeyUpdate().first('restriction')
  const isBlocked = person?.restriction === 'block'
  let position: ContentPosition | undefined = await transaction('person_content_changes')
    .where({ personId })
    .forUpdate()
    .first('step', 'afterTime', 'afterId', 'afterSecondId')
  let read = 0
  while (position !== undefined && read < limit) {
    const { step }: ContentPosition = position
    const rows = await readContent(transaction, personId, position, limit - read)
    if (rows.length > 0)
      await changeContentRows(transaction, { personId, step, isBlocked, ids: rows.map(({ id }) => id) })
    position = rows.length < limit - read ? stepAfter(step) : positionAfter(step, rows)
    read += rows.length
  }
  const change = transaction('person_content_changes').where({ personId })
  await (position === undefined ? change.delete() : change.update(position))
  return read
}

function stepAfter(step: ContentStep): ContentPosition | undefined {
  const next = STEPS[STEPS.indexOf(step) + 1]
  return next && { step: next, afterTime: null, afterId: null, afterSecondId: null }
}

function positionAfter(step: ContentStep, rows: readonly ContentRow[]): ContentPosition | undefined {
  const last = rows.at(-1)
  return last && { step, afterTime: last.afterTime, afterId: last.afterId, afterSecondId: last.afterSecondId }
}

/** Each reads one index of the author, in its order. */
const CONTENT_SQL: Readonly<Record<ContentStep, string>> = {
  posts: `
    select id, created_at as "afterTime", id as "afterId", null as "afterSecondId" from posts
    where author_id = :personId and (cast(:afterId as bigint) is null or (created_at, id) < (:afterTime, :afterId))
    order by created_at desc, id desc limit :limit`,
  comments: `
    select id, null as "afterTime", post_id as "afterId", id as "afterSecondId" from comments
    where author_id = :personId and (post_id, id) > (coalesce(:afterId, 0), coalesce(:afterSecondId, 0))
    order by post_id, id limit :limit`,
  likes_of_posts: `
    select post_id as id, null as "afterTime", post_id as "afterId", null as "afterSecondId" from likes
    where author_id = :personId and post_id > coalesce(:afterId, 0)
    order by post_id limit :limit`,
  likes_of_comments: `
    select comment_id as id, null as "afterTime", comment_id as "afterId", null as "afterSecondId" from likes
    where author_id = :personId and comment_id > coalesce(:afterId, 0)
    order by comment_id limit :limit`,
}

async function readContent(
  transaction: Knex.Transaction,
  personId: number,
  { step, afterTime, afterId, afterSecondId }: ContentPosition,
  limit: number,
): Promise<readonly ContentRow[]> {
  const place =
    step === 'posts' ? { afterTime, afterId } : step === 'comments' ? { afterId, afterSecondId } : { afterId }
  return queryRows<ContentRow>(transaction, CONTENT_SQL[step], { personId, limit, ...place })
}

interface ChangedContent {
  readonly personId: number
  readonly step: ContentStep
  readonly isBlocked: boolean
  readonly ids: readonly number[]
}

async function changeContentRows(transaction: Knex.Transaction, change: ChangedContent): Promise<void> {
  const { step, isBlocked, ids } = change
  switch (step) {
    case 'posts':
      return isBlocked ? hidePosts(transaction, ids) : unhideContentRows(transaction, { postIds: ids, commentIds: [] })
    case 'comments':
      return isBlocked
        ? hideComments(transaction, ids)
        : unhideContentRows(transaction, { postIds: [], commentIds: ids })
    case 'likes_of_posts':
    case 'likes_of_comments':
      return changeLikes(transaction, change)
  }
}

/** Posts are locked before their comments, as in all other changes of comments. */
async function changeLikes(
  transaction: Knex.Transaction,
  { personId, step, isBlocked, ids }: ChangedContent,
): Promise<void> {
  const table = step === 'likes_of_posts' ? 'post' : 'comment'
  const posts = step === 'likes_of_posts' ? ':ids' : 'array(select post_id from comments where id = any(:ids))'
  const values = { personId, ids: [...ids], isHidden: isBlocked, change: isBlocked ? -1 : 1 }
  await transaction.raw(
    `select id from posts where id = any(cast(${posts} as bigint[])) order by id for no key update`,
    {
      ids: values.ids,
    },
  )
  await transaction.raw(
    `with changed as (
       update likes set hidden = :isHidden
       where author_id = :personId and ${table}_id = any(cast(:ids as bigint[])) and hidden <> :isHidden
       returning ${table}_id as id, positive
     ), locked as (
       select id from ${table}s where id in (select id from changed where positive) order by id for no key update
     )
     update ${table}s set likes_count = greatest(0, likes_count + :change) from locked where ${table}s.id = locked.id`,
    values,
  )
}
