import type { Knex } from 'knex'
import { named } from './database.js'
import { hasRow } from './has-row.js'
import type { PersonSummary, Reader } from './listed-posts.js'
import type { Comment } from './models/comment.js'
import { orderOf, type Page, pageOf, seek, type TimePage } from './paged.js'

/** What a client is shown of a comment. */
export interface ListedComment extends Pick<Comment, 'id' | 'guid' | 'text' | 'likesCount' | 'createdAt'> {
  readonly author: PersonSummary
  readonly mentionedPeople: readonly PersonSummary[]
  /** What the reader has done with it. */
  readonly own: { readonly liked: boolean; readonly reported: boolean }
}

/** The oldest first, if the page names no place. */
export async function listedComments(
  db: Knex,
  { userId, personId }: Reader,
  postId: number,
  page: TimePage,
): Promise<Page<ListedComment>> {
  const values: unknown[] = [postId]
  const place = { time: 'created_at', id: 'id', otherwise: 'oldest first', firstValue: 3 } as const
  const { name, most, condition, order } = seek(page, values, place)
  const some = `select * from comments where post_id = $3 ${condition} ${order}`
  const which = `select * from (${some}) as found limit ${most}`
  const direction = orderOf(page, 'oldest first') === 'newest first' ? 'desc' : 'asc'
  const found = await named<ListedComment>(
    db,
    `comments ${name}`,
    `${shown(which)} order by page.created_at ${direction}, page.id ${direction}`,
    [userId, personId, ...values],
  )
  return pageOf(found, page)
}

/** Undefined: it is gone. */
export async function listedComment(
  db: Knex,
  { userId, personId }: Reader,
  id: number,
): Promise<ListedComment | undefined> {
  const [comment] = await named<ListedComment>(db, 'comment', shown('select * from comments where id = $3'), [
    userId,
    personId,
    id,
  ])
  return comment
}

const summary = `
  'guid', people.guid, 'address', people.address, 'name', people.name, 'avatarUrl', people.avatar_url`

const mentionedPeople = `
  select coalesce(json_agg(json_build_object(${summary}) order by mentions.id), '[]')
  from mentions join people on people.id = mentions.person_id
  where mentions.comment_id = page.id`

function shown(which: string): string {
  return `
    select
      page.id, page.guid, page.text, page.likes_count as "likesCount", page.created_at as "createdAt",
      json_build_object(${summary}) as author,
      (${mentionedPeople}) as "mentionedPeople",
      json_build_object(
        'liked', ${hasRow('likes where author_id = $2 and comment_id = page.id and positive')},
        'reported', ${hasRow('reports where user_id = $1 and comment_id = page.id')}
      ) as own
    from (${which}) as page
    join people on people.id = page.author_id`
}
