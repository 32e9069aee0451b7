import { type OwnedPerson, personColumns } from '../people/person-summaries.js'
import { SHOWN_ALT_TEXT_SQL } from '../photos/list-photos.js'
import {
  type AggregatedColumns,
  aggregateColumns,
  booleanColumn,
  nullableNumberColumn,
  nullableTextColumn,
  numberColumn,
  textColumn,
  timeColumn,
} from '../sql/column-lists.js'
import { hasRowSql } from '../sql/has-row.js'
import { aggregateViewerActions } from './viewer-actions.js'
import { isAuthorUnblockedSql } from './visibility.js'

/** A prepared statement that selects the posts to list. */
export interface PostQuery {
  /** The name of the prepared statement. */
  readonly name: string
  /** The most posts that the query returns, as a literal in the statement. The same name always has the same number. */
  readonly maxRows: number
  readonly selectPosts: SelectPosts
  /** The parameters from $3 on. */
  readonly values: readonly unknown[]
}

/** Selects these columns of `posts` in listing order. $1 is the viewer's user id, $2 the viewer's person id. */
export type SelectPosts = (columns: string) => string

/** The columns of a post that may change. `post-contents.ts` caches the others. */
export const postAggregate = aggregateColumns({
  id: numberColumn('id'),
  createdAt: timeColumn('created_at'),
  commentsCount: numberColumn('comments_count'),
  likesCount: numberColumn('likes_count'),
  resharesCount: numberColumn('reshares_count'),
  interactedAt: timeColumn('interacted_at'),
  authorId: numberColumn('author_id'),
  rootId: nullableNumberColumn('root_id'),
  isHidden: booleanColumn('public_before_hiding is not null'),
})

/** The authors of the posts and of their roots, and the people mentioned in them. */
export const personAggregate = aggregateColumns({
  ...personColumns,
  nsfw: booleanColumn('people.id = any(person_ids.nsfw_ids)'),
})

export const mentionAggregate = aggregateColumns<OwnedPerson>({
  ownerId: numberColumn('post_id'),
  personId: numberColumn('person_id'),
})

export const photoAggregate = aggregateColumns({
  ownerId: numberColumn('post_id'),
  height: nullableNumberColumn('height'),
  width: nullableNumberColumn('width'),
  name: textColumn('name'),
  remotePath: nullableTextColumn('remote_path'),
  text: nullableTextColumn(SHOWN_ALT_TEXT_SQL),
})

const viewerVotedForAnswer = hasRowSql(`
  poll_participations
  where poll_participations.poll_id = polls.id and poll_participations.author_id = $2
    and poll_participations.poll_answer_id = poll_answers.id`)

/** The votes for an answer of a poll, and whether one is the viewer's. */
export const pollAnswerAggregate = aggregateColumns({
  id: numberColumn('poll_answers.id'),
  voteCount: numberColumn('vote_count'),
  isViewersVote: booleanColumn(viewerVotedForAnswer),
})

/** Actions of the viewer on the posts of the page and their roots. */
export const viewerActions = aggregateViewerActions({
  liked: 'post_id as id from likes where author_id = $2 and post_id = any(page.ids) and positive',
  reshared: 'root_id as id from posts where author_id = $2 and root_id = any(page.ids)',
  subscribed: 'post_id as id from participations where author_id = $2 and post_id = any(page.ids)',
  reported: 'post_id as id from reports where user_id = $1 and post_id = any(page.ids)',
})

/** The single row that `postsSql` returns. */
export interface PostsRow {
  readonly posts: AggregatedColumns
  readonly roots: AggregatedColumns
  readonly people: AggregatedColumns
  readonly mentions: AggregatedColumns
  readonly photos: AggregatedColumns
  readonly pollAnswers: AggregatedColumns
  readonly actions: AggregatedColumns
}

/**
 * Builds the statement that returns a page of posts with the data of their roots, people, mentions, photos, polls and viewer actions.
 *
 * One row with one aggregate per table: each table is read once for all posts of the page by `= any(ids)`, through the index on its key.
 * Reading per post costs several times as much, and so does each join that has to be set up. The literal limit keeps the generic plan
 * (see `KeysetClauses.maxRows`).
 */
export function postsSql({ selectPosts, maxRows }: Pick<PostQuery, 'selectPosts' | 'maxRows'>): string {
  return `
    with page as materialized (
      select
        ${postAggregate.select} as posts,
        array_agg(id) || array_agg(root_id) as ids, array_agg(root_id) as root_ids, array_agg(author_id) as author_ids
      from (select * from (${selectPosts(COLUMNS_SQL)}) as selected limit ${maxRows}) as selected
    )
    select
      posts, roots, ${PEOPLE_SQL} as people, mentions, ${PHOTOS_SQL} as photos, ${POLL_ANSWERS_SQL} as "pollAnswers",
      ${viewerActions.select} as actions
    from page
    cross join lateral (
      select ${postAggregate.select} as roots, array_agg(author_id) as author_ids
      from posts where id = any(page.root_ids) and ${isAuthorUnblockedSql('posts.author_id')}
    ) as page_roots
    cross join lateral (
      select ${mentionAggregate.select} as mentions, array_agg(person_id) as person_ids
      from (select post_id, person_id from mentions where post_id = any(page.ids) order by id) as page_mentions
    ) as page_mentions`
}

/** Reshares followed from a reshare to its original post. Other pods send reshares of reshares. */
export const MAX_RESHARE_CHAIN = 20
const MAX_POSTS_OF_CHAINS = 2_000

/**
 * Selects all posts on the chains from these reshares to their original posts, each once. The recursion and the join look posts up by
 * their primary key; `offset 0` keeps the planner from joining by a scan of all posts.
 */
export function reshareChainQuery(reshareIds: readonly number[]): PostQuery {
  return {
    name: 'posts of reshare chains',
    maxRows: MAX_POSTS_OF_CHAINS,
    selectPosts: (columns) => `
      with recursive chain as (
        select posts.root_id as id, 1 as depth from posts where posts.id = any($3::bigint[])
        union
        select posts.root_id, chain.depth + 1 from chain join posts on posts.id = chain.id
        where chain.depth < ${MAX_RESHARE_CHAIN}
      )
      select ${columns}
      from (select distinct id from chain) as chain_ids
      cross join lateral (select * from posts where posts.id = chain_ids.id offset 0) as posts`,
    values: [reshareIds],
  }
}

const COLUMNS_SQL = `
  posts.id, posts.created_at, posts.comments_count, posts.likes_count, posts.reshares_count, posts.interacted_at,
  posts.author_id, posts.root_id, posts.public_before_hiding`

/** `offset 0` keeps the ids computed once. The partial index `profiles_nsfw` holds only the few profiles that are marked. */
const PEOPLE_SQL = `(
  select ${personAggregate.select}
  from (
    select ids, array(select person_id from profiles where profiles.nsfw and person_id = any(ids)) as nsfw_ids
    from (select page.author_ids || page_roots.author_ids || page_mentions.person_ids as ids offset 0) as person_ids
    offset 0
  ) as person_ids
  join people on people.id = any(person_ids.ids)
)`

const PHOTOS_SQL = `(
  select ${photoAggregate.select} from (select * from photos where post_id = any(page.ids) order by position, id) as photos
)`

const POLL_ANSWERS_SQL = `(
  select ${pollAnswerAggregate.select}
  from polls join poll_answers on poll_answers.poll_id = polls.id
  where polls.post_id = any(page.ids)
)`
