import type { Knex } from 'knex'
import { type Belonging, byOwner } from './belongings.js'
import { named } from './database.js'
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
  reader: Reader,
  postId: number,
  page: TimePage,
): Promise<Page<ListedComment>> {
  const values: unknown[] = [postId]
  const place = { time: 'created_at', id: 'id', otherwise: 'oldest first', firstValue: 3 } as const
  const { name, most, condition, order } = seek(page, values, place)
  const some = `select * from comments where post_id = $3 ${condition} ${order}`
  const which = `select * from (${some}) as found limit ${most}`
  const direction = orderOf(page, 'oldest first') === 'newest first' ? 'desc' : 'asc'
  const text = shown(which, `order by page.created_at ${direction}, page.id ${direction}`)
  return pageOf(await found(db, reader, { name: `comments ${name}`, text, values }), page)
}

/** Undefined: it is gone. */
export async function listedComment(db: Knex, reader: Reader, id: number): Promise<ListedComment | undefined> {
  const text = shown('select * from comments where id = $3')
  const [comment] = await found(db, reader, { name: 'comment', text, values: [id] })
  return comment
}

interface CommentQuery {
  readonly name: string
  readonly text: string
  /** From $3 on: the reader's ids of user and person come before them. */
  readonly values: readonly unknown[]
}

/** All in one row; null: there is nothing of the kind. */
interface Found {
  readonly comments: readonly Row[] | null
  readonly mentionedPeople: readonly (Belonging & PersonSummary)[] | null
}

interface Row extends Omit<ListedComment, 'createdAt' | 'mentionedPeople'> {
  readonly createdAt: string
}

async function found(
  db: Knex,
  { userId, personId }: Reader,
  { name, text, values }: CommentQuery,
): Promise<readonly ListedComment[]> {
  const [all] = await named<Found>(db, name, text, [userId, personId, ...values])
  const mentionedPeople = byOwner(all?.mentionedPeople)
  return (all?.comments ?? []).map(({ id, guid, text: body, likesCount, createdAt, author, own }) => ({
    id,
    guid,
    text: body,
    likesCount,
    createdAt: new Date(createdAt),
    author,
    own,
    mentionedPeople: mentionedPeople.get(id) ?? [],
  }))
}

const anyOfThem = 'any(array(select id from page))'

const mentionedPeople = `
  select mentions.comment_id as "ownerId", people.guid, people.address, people.name, people.avatar_url as "avatarUrl"
  from mentions join people on people.id = mentions.person_id
  where mentions.comment_id = ${anyOfThem}
  order by mentions.id`

const own = `
  select
    page.id = any(array(
      select comment_id from likes where author_id = $2 and comment_id = ${anyOfThem} and positive
    )) as liked,
    page.id = any(array(select comment_id from reports where user_id = $1 and comment_id = ${anyOfThem})) as reported`

/** Nothing may make a join of it: on a small pod the planner would read all people for the authors of a page. */
const author = `
  select people.guid, people.address, people.name, people.avatar_url as "avatarUrl"
  from people where people.id = page.author_id
  offset 0`

function shown(which: string, order = ''): string {
  return `
    with page as materialized (${which}), shown as (
      select page.id, page.guid, page.text, page.likes_count as "likesCount", page.created_at as "createdAt", author, own
      from page
      cross join lateral (${author}) as author
      cross join lateral (${own}) as own
      ${order}
    )
    select
      (select json_agg(shown) from shown) as comments,
      (select json_agg(person) from (${mentionedPeople}) as person) as "mentionedPeople"`
}
