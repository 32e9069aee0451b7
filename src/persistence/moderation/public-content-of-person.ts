import type { Knex } from 'knex'
import type { RetractableKind } from '../../protocol/entities/registry.js'
import type { TargetType } from '../../protocol/entities/retraction.js'
import { queryRow, queryRows } from '../database/database.js'
import { SENT_PUBLICLY_SQL } from '../posts/visibility.js'
import { RECORD_TABLES } from '../sql/record-tables.js'
import { countUpTo } from './pod-preview.js'

export interface ContentOfPerson {
  readonly type: 'post' | 'comment'
  readonly id: number
  readonly guid: string
}

/** The position after the last changed row: in the comments, and after them in the posts. */
export interface ContentCursor {
  readonly step: 'comments' | 'posts'
  readonly afterTime: string | null
  readonly afterPostId: number
  readonly afterId: number
}

export const FIRST_CONTENT_CURSOR: ContentCursor = { step: 'comments', afterTime: null, afterPostId: 0, afterId: 0 }

interface CommentOfPerson extends ContentOfPerson {
  readonly postId: number
}

interface PostOfPerson extends ContentOfPerson {
  readonly at: string
}

/** Comments of a person on public posts, then their public posts, after a place. Each reads one index of the author, in its order. */
export async function findContentToChange(
  db: Knex,
  personId: number,
  cursor: ContentCursor,
  limit: number,
): Promise<{ readonly items: readonly ContentOfPerson[]; readonly next: ContentCursor }> {
  const comments =
    cursor.step === 'comments' ? await queryRows<CommentOfPerson>(db, COMMENTS_SQL, { personId, ...cursor, limit }) : []
  const postLimit = limit - comments.length
  const fromPosts = cursor.step === 'posts' ? cursor : { afterTime: null, afterId: 0 }
  const posts =
    postLimit === 0 ? [] : await queryRows<PostOfPerson>(db, POSTS_SQL, { personId, ...fromPosts, limit: postLimit })
  return { items: [...comments, ...posts], next: nextCursor(cursor, comments.at(-1), posts.at(-1)) }
}

function nextCursor(
  before: ContentCursor,
  comment: CommentOfPerson | undefined,
  post: PostOfPerson | undefined,
): ContentCursor {
  if (post !== undefined) return { step: 'posts', afterTime: post.at, afterPostId: 0, afterId: post.id }
  return comment === undefined ? before : { ...before, afterPostId: comment.postId, afterId: comment.id }
}

/** Counts the public posts and comments of a person. Each count ends at one more than the bound of previews. */
export async function countPublicContent(db: Knex, personId: number): Promise<number> {
  const content = await queryRow<{ readonly posts: number; readonly comments: number }>(
    db,
    `select ${countUpTo(`select from posts where author_id = :personId and ${SENT_PUBLICLY_SQL}`)} as posts,
       ${countUpTo(`select from comments join posts on posts.id = post_id where comments.author_id = :personId and ${SENT_PUBLICLY_SQL}`)} as comments`,
    { personId },
  )
  return content.posts + content.comments
}

const COMMENTS_SQL = `
  select 'comment' as type, comments.id, comments.guid, comments.post_id as "postId" from comments join posts on posts.id = post_id
  where comments.author_id = :personId and posts.author_id is not null and ${SENT_PUBLICLY_SQL}
    and (comments.post_id, comments.id) > (:afterPostId, :afterId)
  order by comments.post_id, comments.id limit :limit`

const POSTS_SQL = `
  select 'post' as type, id, guid, created_at::text as at from posts
  where author_id = :personId and ${SENT_PUBLICLY_SQL}
    and (cast(:afterTime as timestamptz) is null or (created_at, id) < (cast(:afterTime as timestamptz), :afterId))
  order by created_at desc, id desc limit :limit`

interface PurgedContent {
  readonly kind: RetractableKind
  readonly ids: readonly number[]
  readonly tombstones: readonly { readonly type: string; readonly guid: string }[]
}

/** The next rows of a person to delete, of one kind. Undefined: nothing is left. */
export async function findContentToPurge(
  db: Knex,
  personId: number,
  limit: number,
): Promise<PurgedContent | undefined> {
  for (const kind of Object.keys(PURGED) as RetractableKind[]) {
    const purge = PURGED[kind]
    if (purge === undefined) continue
    const type = purge.tombstone
    const rows: readonly { id: number; guid: string }[] = await db(RECORD_TABLES[kind].table)
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

/** The kinds that are purged, with the type of their tombstone. New likes and votes of a blocked person are rejected anyway. */
const PURGED: Readonly<Record<RetractableKind, { readonly tombstone: TargetType | undefined } | undefined>> = {
  post: { tombstone: 'Post' },
  photo: { tombstone: 'Photo' },
  comment: { tombstone: 'Comment' },
  like: { tombstone: undefined },
  poll_participation: { tombstone: undefined },
  participation: undefined,
  poll: undefined, // with its post
  conversation: undefined,
}

/** Deletes the contacts with a person. Returns the users who shared with them. */
export async function deleteContactsOfPerson(
  transaction: Knex.Transaction,
  personId: number,
): Promise<readonly { readonly userId: number; readonly ownPersonId: number }[]> {
  return queryRows<{ readonly userId: number; readonly ownPersonId: number }>(
    transaction,
    `with ended as (
       delete from contacts where person_id = ? returning user_id, coalesce(inactive_receiving, receiving) as receiving
     )
     select users.id as "userId", users.person_id as "ownPersonId" from ended join users on users.id = ended.user_id
     where ended.receiving order by users.id`,
    [personId],
  )
}
