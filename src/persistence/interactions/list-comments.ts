import type { Knex } from 'knex'
import { namedRow } from '../database/database.js'
import type { Comment } from '../models/comment.js'
import {
  type PersonOfOne,
  type PersonSummary,
  peopleOf,
  peopleOfEach,
  personAmong,
} from '../people/person-summaries.js'
import type { Reader } from '../posts/list-posts.js'
import { viewerActionsForm } from '../posts/viewer-actions.js'
import { type Visibility, visibilityCondition } from '../posts/visibility.js'
import { columnForm, moment, number, text, valueAt, type Written } from '../sql/column-lists.js'
import { type Page, pageOf, seek, type TimePage } from '../sql/keyset-page.js'

/** What a client is shown of a comment. */
export interface ListedComment extends Pick<Comment, 'id' | 'guid' | 'text' | 'likesCount' | 'createdAt'> {
  readonly author: PersonSummary
  readonly mentionedPeople: readonly PersonSummary[]
  /** What the reader has done with it. */
  readonly own: { readonly liked: boolean; readonly reported: boolean }
}

/** The oldest first, if the page names no place; nothing, when no visible post has that guid. */
export async function listCommentsOfPost(
  db: Knex,
  reader: Reader,
  {
    postGuid,
    visibility,
    page,
  }: { readonly postGuid: string; readonly visibility: Visibility; readonly page: TimePage },
): Promise<Page<ListedComment>> {
  const values: unknown[] = [postGuid]
  const place = { time: 'created_at', id: 'id', otherwise: 'oldest first', firstValue: 3 } as const
  const { name, most, condition, order } = seek(page, values, place)
  const post = `select posts.id from posts where posts.guid = $3 and ${visibilityCondition[visibility]}`
  const some = `select * from comments where post_id = (${post}) ${condition} ${order}`
  const which = `select * from (${some}) as found limit ${most}`
  return pageOf(await queryComments(db, reader, { name: `comments ${visibility} ${name}`, which, values }), page)
}

/** Undefined: it is gone. */
export async function findListedComment(db: Knex, reader: Reader, id: number): Promise<ListedComment | undefined> {
  const which = 'select * from comments where id = $3'
  const [comment] = await queryComments(db, reader, { name: 'comment', which, values: [id] })
  return comment
}

interface CommentQuery {
  readonly name: string
  /** Selects the comments, in the order in which they are to be listed. */
  readonly which: string
  /** From $3 on: the reader's ids of user and person come before them. */
  readonly values: readonly unknown[]
}

const commentForm = columnForm({
  id: number('id'),
  likesCount: number('likes_count'),
  createdAt: moment('created_at'),
  authorId: number('author_id'),
  guid: text('guid'),
  text: text('text'),
})

const mentionForm = columnForm<PersonOfOne>({ ownerId: number('comment_id'), personId: number('person_id') })

const viewerActions = viewerActionsForm({
  liked: 'comment_id as id from likes where author_id = $2 and comment_id = any(page.ids) and positive',
  reported: 'comment_id as id from reports where user_id = $1 and comment_id = any(page.ids)',
})

/** All in one row. */
interface Found {
  readonly comments: Written
  readonly mentions: Written
  readonly people: Written
  readonly actions: Written
}

async function queryComments(
  db: Knex,
  { userId, personId }: Reader,
  { name, which, values }: CommentQuery,
): Promise<readonly ListedComment[]> {
  const all = await namedRow<Found>(db, name, () => commentsStatement(which), [userId, personId, ...values])
  const { id: ids, guid, text, likesCount, createdAt, authorId } = commentForm.read(all.comments)
  const person = personAmong(all.people)
  const mentionedIn = peopleOfEach(mentionForm.read(all.mentions), person)
  const { liked, reported } = viewerActions.read(all.actions)
  return ids.map((id, place) => ({
    id,
    guid: valueAt(guid, place),
    text: valueAt(text, place),
    likesCount: valueAt(likesCount, place),
    createdAt: new Date(valueAt(createdAt, place)),
    author: person(valueAt(authorId, place)),
    own: { liked: liked.has(id), reported: reported.has(id) },
    mentionedPeople: mentionedIn(id),
  }))
}

function commentsStatement(which: string): string {
  return `
    select
      comments, mentions, ${peopleOf('page.author_ids || mentioning.person_ids')} as people,
      ${viewerActions.select} as actions
    from (
      select ${commentForm.select} as comments, array_agg(id) as ids, array_agg(author_id) as author_ids
      from (${which}) as found
    ) as page
    cross join lateral (
      select ${mentionForm.select} as mentions, array_agg(person_id) as person_ids
      from (select comment_id, person_id from mentions where comment_id = any(page.ids) order by id) as mention
    ) as mentioning`
}
