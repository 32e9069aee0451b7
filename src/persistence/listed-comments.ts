import type { Knex } from 'knex'
import { type ColumnLists, columnLists, momentOf, readMoment, valueAt } from './column-lists.js'
import { namedRow } from './database.js'
import type { Reader } from './listed-posts.js'
import type { Comment } from './models/comment.js'
import { type Page, pageOf, seek, type TimePage } from './paged.js'
import {
  type PeopleOfPage,
  type PersonOfOne,
  type PersonSummary,
  peopleOf,
  peopleOfEach,
  personAmong,
} from './people-of-page.js'
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
  return pageOf(await found(db, reader, { name: `comments ${sight} ${name}`, which, values }), page)
}

/** Undefined: it is gone. */
export async function listedComment(db: Knex, reader: Reader, id: number): Promise<ListedComment | undefined> {
  const which = 'select * from comments where id = $3'
  const [comment] = await found(db, reader, { name: 'comment', which, values: [id] })
  return comment
}

interface CommentQuery {
  readonly name: string
  /** Selects the comments, in the order in which they are to be listed. */
  readonly which: string
  /** From $3 on: the reader's ids of user and person come before them. */
  readonly values: readonly unknown[]
}

/** All in one row. */
interface Found {
  readonly comments: ColumnLists<Row>
  readonly mentioned: ColumnLists<PersonOfOne>
  readonly people: PeopleOfPage
  /** Ids. */
  readonly liked: readonly number[]
  readonly reported: readonly number[]
}

interface Row extends Pick<ListedComment, 'id' | 'guid' | 'text' | 'likesCount'> {
  readonly createdAt: number
  readonly authorId: number
}

async function found(
  db: Knex,
  { userId, personId }: Reader,
  { name, which, values }: CommentQuery,
): Promise<readonly ListedComment[]> {
  const all = await namedRow<Found>(db, name, () => shown(which), [userId, personId, ...values])
  const { id: ids, guid, text, likesCount, createdAt, authorId } = all.comments
  const person = personAmong(all.people)
  const mentionedIn = peopleOfEach(all.mentioned, person)
  const [liked, reported] = [new Set(all.liked), new Set(all.reported)]
  return ids.map((id, place) => ({
    id,
    guid: valueAt(guid, place),
    text: valueAt(text, place),
    likesCount: valueAt(likesCount, place),
    createdAt: readMoment(valueAt(createdAt, place)),
    author: person(valueAt(authorId, place)),
    own: { liked: liked.has(id), reported: reported.has(id) },
    mentionedPeople: mentionedIn(id),
  }))
}

function shown(which: string): string {
  const comments = columnLists<Row>({
    id: 'id',
    guid: 'guid',
    text: 'text',
    likesCount: 'likes_count',
    createdAt: momentOf('created_at'),
    authorId: 'author_id',
  })
  const mentioned = columnLists<PersonOfOne>({ ownerId: 'comment_id', personId: 'person_id' })
  return `
    select
      comments, mentioned, ${peopleOf('page.author_ids || mentions.person_ids')} as people,
      array_to_json(array(
        select comment_id from likes where author_id = $2 and comment_id = any(page.ids) and positive
      )) as liked,
      array_to_json(array(select comment_id from reports where user_id = $1 and comment_id = any(page.ids))) as reported
    from (
      select ${comments} as comments, array_agg(id) as ids, array_agg(author_id) as author_ids from (${which}) as found
    ) as page
    cross join lateral (
      select ${mentioned} as mentioned, array_agg(person_id) as person_ids
      from (select comment_id, person_id from mentions where comment_id = any(page.ids) order by id) as mention
    ) as mentions`
}
