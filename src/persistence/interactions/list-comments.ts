import type { Knex } from 'knex'
import { queryPreparedRow } from '../database/database.js'
import type { Comment } from '../models/comment.js'
import {
  decodePeople,
  groupPeopleByOwner,
  type OwnedPerson,
  type PersonSummary,
  peopleSql,
} from '../people/person-summaries.js'
import type { ViewerIds } from '../posts/list-posts.js'
import { aggregateViewerActions } from '../posts/viewer-actions.js'
import { isAuthorUnblockedSql, type Visibility, visibilityCondition } from '../posts/visibility.js'
import {
  type AggregatedColumns,
  aggregateColumns,
  booleanColumn,
  numberColumn,
  textColumn,
  timeColumn,
  valueAt,
} from '../sql/column-lists.js'
import { keysetClauses, type Page, type TimePage, toPage } from '../sql/keyset-page.js'

/** A comment as clients see it. */
export interface ListedComment extends Pick<Comment, 'id' | 'guid' | 'text' | 'likesCount' | 'createdAt'> {
  /** Only the author is shown a hidden comment. */
  readonly isHidden: boolean
  readonly author: PersonSummary
  readonly mentionedPeople: readonly PersonSummary[]
  /** Actions of the viewer. */
  readonly viewerActions: { readonly liked: boolean; readonly reported: boolean }
}

/** Lists a page of comments: newest first before a position, otherwise oldest first. Empty if no visible post has that guid. */
export async function listCommentsOfPost(
  db: Knex,
  viewer: ViewerIds,
  {
    postGuid,
    visibility,
    page,
  }: { readonly postGuid: string; readonly visibility: Visibility; readonly page: TimePage },
): Promise<Page<ListedComment>> {
  const values: unknown[] = [postGuid]
  const place = { time: 'created_at', id: 'id', orderWithoutKey: 'oldest first', firstValue: 3 } as const
  const { name, maxRows, condition, order } = keysetClauses(page, values, place)
  const post = `select posts.id from posts where posts.guid = $3 and ${visibilityCondition[visibility]} and ${isAuthorUnblockedSql('posts.author_id')}`
  const isShown = `(not hidden or author_id = $2) and ${isAuthorUnblockedSql('comments.author_id')}`
  const pageSql = `select * from comments where post_id = (${post}) and ${isShown} ${condition} ${order}`
  const rowsSql = `select * from (${pageSql}) as found limit ${maxRows}`
  return toPage(await queryComments(db, viewer, { name: `comments ${visibility} ${name}`, rowsSql, values }), page)
}

/** Undefined: the comment was deleted. */
export async function findListedComment(db: Knex, viewer: ViewerIds, id: number): Promise<ListedComment | undefined> {
  const rowsSql = 'select * from comments where id = $3'
  const [comment] = await queryComments(db, viewer, { name: 'comment', rowsSql, values: [id] })
  return comment
}

interface CommentQuery {
  readonly name: string
  /** Selects the comments, in the order in which they are to be listed. */
  readonly rowsSql: string
  /** Values from $3 on: the viewer's ids of user and person come before them. */
  readonly values: readonly unknown[]
}

const commentAggregate = aggregateColumns({
  id: numberColumn('id'),
  likesCount: numberColumn('likes_count'),
  createdAt: timeColumn('created_at'),
  isHidden: booleanColumn('hidden'),
  authorId: numberColumn('author_id'),
  guid: textColumn('guid'),
  text: textColumn('text'),
})

const mentionAggregate = aggregateColumns<OwnedPerson>({
  ownerId: numberColumn('comment_id'),
  personId: numberColumn('person_id'),
})

const viewerActions = aggregateViewerActions({
  liked: 'comment_id as id from likes where author_id = $2 and comment_id = any(page.ids) and positive',
  reported: 'comment_id as id from reports where user_id = $1 and comment_id = any(page.ids)',
})

/** The whole page in one row: a list for each column. */
interface CommentColumns {
  readonly comments: AggregatedColumns
  readonly mentions: AggregatedColumns
  readonly people: AggregatedColumns
  readonly actions: AggregatedColumns
}

async function queryComments(
  db: Knex,
  { userId, personId }: ViewerIds,
  { name, rowsSql, values }: CommentQuery,
): Promise<readonly ListedComment[]> {
  const rows = await queryPreparedRow<CommentColumns>(db, name, () => commentsSql(rowsSql), [
    userId,
    personId,
    ...values,
  ])
  const { id: ids, guid, text, likesCount, createdAt, authorId, isHidden } = commentAggregate.decode(rows.comments)
  const person = decodePeople(rows.people)
  const mentionedIn = groupPeopleByOwner(mentionAggregate.decode(rows.mentions), person)
  const { liked, reported } = viewerActions.decode(rows.actions)
  return ids.map((id, index) => ({
    id,
    guid: valueAt(guid, index),
    text: valueAt(text, index),
    likesCount: valueAt(likesCount, index),
    createdAt: new Date(valueAt(createdAt, index)),
    isHidden: valueAt(isHidden, index),
    author: person(valueAt(authorId, index)),
    viewerActions: { liked: liked.has(id), reported: reported.has(id) },
    mentionedPeople: mentionedIn(id),
  }))
}

function commentsSql(rowsSql: string): string {
  return `
    select
      comments, mentions, ${peopleSql('page.author_ids || mentioning.person_ids')} as people,
      ${viewerActions.select} as actions
    from (
      select ${commentAggregate.select} as comments, array_agg(id) as ids, array_agg(author_id) as author_ids
      from (${rowsSql}) as found
    ) as page
    cross join lateral (
      select ${mentionAggregate.select} as mentions, array_agg(person_id) as person_ids
      from (select comment_id, person_id from mentions where comment_id = any(page.ids) order by id) as mention
    ) as mentioning`
}
