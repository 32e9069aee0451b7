import type { Knex } from 'knex'
import { type Belonging, byOwner } from './belongings.js'
import { named } from './database.js'
import type { PersonSummary, Reader } from './listed-posts.js'
import type { Comment } from './models/comment.js'
import { orderOf, type Page, pageOf, seek, type TimePage } from './paged.js'
import { type PeopleOfPage, peopleOf, personAmong } from './people-of-page.js'
import { inSight, type Sight } from './sight.js'

/** What a client is shown of a comment. */
export interface ListedComment extends Pick<Comment, 'id' | 'guid' | 'text' | 'likesCount' | 'createdAt'> {
  readonly author: PersonSummary
  readonly mentionedPeople: readonly PersonSummary[]
  /** What the reader has done with it. */
  readonly own: { readonly liked: boolean; readonly reported: boolean }
}

/** The oldest first, if the page names no place; nothing, where no post of that name is in sight. */
export async function listedComments(
  db: Knex,
  reader: Reader,
  { postGuid, sight, page }: { readonly postGuid: string; readonly sight: Sight; readonly page: TimePage },
): Promise<Page<ListedComment>> {
  const values: unknown[] = [postGuid]
  const place = { time: 'created_at', id: 'id', otherwise: 'oldest first', firstValue: 3 } as const
  const { name, most, condition, order } = seek(page, values, place)
  const post = `select posts.id from posts where posts.guid = $3 and ${inSight[sight]}`
  const some = `select * from comments where post_id = (${post}) ${condition} ${order}`
  const which = `select * from (${some}) as found limit ${most}`
  const direction = orderOf(page, 'oldest first') === 'newest first' ? 'desc' : 'asc'
  const text = shown(which, `order by created_at ${direction}, id ${direction}`)
  return pageOf(await found(db, reader, { name: `comments ${sight} ${name}`, text, values }), page)
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
  readonly people: PeopleOfPage
  readonly mentions: readonly (Belonging & { readonly personId: number })[] | null
  /** Ids. */
  readonly liked: readonly number[] | null
  readonly reported: readonly number[] | null
}

interface Row extends Omit<ListedComment, 'createdAt' | 'author' | 'mentionedPeople' | 'own'> {
  readonly createdAt: string
  readonly authorId: number
}

async function found(
  db: Knex,
  { userId, personId }: Reader,
  { name, text, values }: CommentQuery,
): Promise<readonly ListedComment[]> {
  const [all] = await named<Found>(db, name, text, [userId, personId, ...values])
  const person = personAmong(all?.people)
  const mentions = byOwner(all?.mentions)
  const [liked, reported] = [new Set(all?.liked), new Set(all?.reported)]
  return (all?.comments ?? []).map(({ id, guid, text: body, likesCount, createdAt, authorId }) => ({
    id,
    guid,
    text: body,
    likesCount,
    createdAt: new Date(createdAt),
    author: person(authorId),
    own: { liked: liked.has(id), reported: reported.has(id) },
    mentionedPeople: (mentions.get(id) ?? []).map((mention) => person(mention.personId)),
  }))
}

const anyOfThem = 'any(array(select id from page))'

function shown(which: string, order = ''): string {
  return `
    with page as materialized (${which}), mentioned as materialized (
      select comment_id as "ownerId", person_id as "personId"
      from mentions where comment_id = ${anyOfThem}
      order by id
    )
    select
      (
        select json_agg(comment)
        from (
          select id, guid, text, likes_count as "likesCount", created_at as "createdAt", author_id as "authorId"
          from page ${order}
        ) as comment
      ) as comments,
      ${peopleOf('select author_id from page union all select "personId" from mentioned')} as people,
      (select json_agg(mentioned) from mentioned) as mentions,
      (select json_agg(comment_id) from likes where author_id = $2 and comment_id = ${anyOfThem} and positive) as liked,
      (select json_agg(comment_id) from reports where user_id = $1 and comment_id = ${anyOfThem}) as reported`
}
