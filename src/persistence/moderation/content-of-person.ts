import type { Knex } from 'knex'
import type { DestructibleKind } from '../posts/destroy-entities.js'
import { SENT_PUBLICLY } from '../posts/visibility.js'

export interface ContentOfPerson {
  readonly type: 'post' | 'comment'
  readonly id: number
  readonly guid: string
}

/** Public posts of a person, and their comments on public posts, which an action has not hidden yet; comments first, the oldest first. */
export async function findContentToChange(
  db: Knex,
  personId: number,
  actionId: number,
  limit: number,
): Promise<readonly ContentOfPerson[]> {
  const { rows: comments } = await db.raw(selectComments, { personId, actionId, limit })
  const left = limit - comments.length
  const { rows: posts } = left === 0 ? { rows: [] } : await db.raw(selectPosts, { personId, actionId, limit: left })
  return [...comments, ...posts]
}

export async function countPublicContent(db: Knex, personId: number): Promise<number> {
  const { rows } = await db.raw(
    `select (select count(*) from posts where author_id = :personId and ${SENT_PUBLICLY})
       + (select count(*) from comments join posts on posts.id = post_id where comments.author_id = :personId and ${SENT_PUBLICLY})
       as count`,
    { personId },
  )
  return Number(rows[0].count)
}

const selectComments = `
  select 'comment' as type, comments.id, comments.guid from comments join posts on posts.id = post_id
  where comments.author_id = :personId and posts.author_id is not null and ${SENT_PUBLICLY}
    and not exists (select from hidden_content where action_id = :actionId and comment_id = comments.id)
  order by comments.id limit :limit`

const selectPosts = `
  select 'post' as type, id, guid from posts
  where author_id = :personId and ${SENT_PUBLICLY}
    and not exists (select from hidden_content where action_id = :actionId and post_id = posts.id)
  order by id limit :limit`

interface PurgedContent {
  readonly kind: DestructibleKind
  readonly ids: readonly number[]
  readonly tombstones: readonly { readonly type: string; readonly guid: string }[]
}

/** The next rows of a person to delete, of one kind. Undefined: nothing is left. */
export async function findContentToPurge(
  db: Knex,
  personId: number,
  limit: number,
): Promise<PurgedContent | undefined> {
  for (const { kind, table, type } of PURGED) {
    const rows: readonly { id: number; guid: string }[] = await db(table)
      .where({ authorId: personId })
      .orderBy('id')
      .limit(limit)
      .select('id', 'guid')
    if (rows.length === 0) continue
    const ids = rows.map(({ id }) => id)
    const photos = kind === 'post' ? await db('photos').whereIn('postId', ids).select('guid') : []
    const tombstones = type === undefined ? [] : rows.map(({ guid }) => ({ type, guid }))
    return { kind, ids, tombstones: [...tombstones, ...photos.map(({ guid }) => ({ type: 'Photo', guid }))] }
  }
  return undefined
}

/** New likes and votes of a blocked person are rejected anyway. */
const PURGED = [
  { kind: 'post', table: 'posts', type: 'Post' },
  { kind: 'photo', table: 'photos', type: 'Photo' },
  { kind: 'comment', table: 'comments', type: 'Comment' },
  { kind: 'like', table: 'likes', type: undefined },
  { kind: 'poll_participation', table: 'poll_participations', type: undefined },
] as const satisfies readonly { kind: DestructibleKind; table: string; type: string | undefined }[]

/** Deletes the contacts with a person. Returns the users who shared with them. */
export async function deleteContactsOf(
  transaction: Knex.Transaction,
  personId: number,
): Promise<readonly { readonly userId: number; readonly ownPersonId: number }[]> {
  const { rows } = await transaction.raw(
    `with ended as (
       delete from contacts where person_id = ? returning user_id, coalesce(inactive_receiving, receiving) as receiving
     )
     select users.id as "userId", users.person_id as "ownPersonId" from ended join users on users.id = ended.user_id
     where ended.receiving order by users.id`,
    [personId],
  )
  return rows
}
