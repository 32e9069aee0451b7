import { type PersonOfOne, personColumns } from '../people/person-summaries.js'
import { SHOWN_ALT_TEXT } from '../photos/list-photos.js'
import { columnForm, moment, number, numberOrNull, text, textOrNull, truth, type Written } from '../sql/column-lists.js'
import { hasRow } from '../sql/has-row.js'
import { viewerActionsForm } from './viewer-actions.js'

/** Some posts, however they are found. */
export interface PostQuery {
  /** Names the statement. */
  readonly name: string
  /** No more than so many are found; belongs to the name. */
  readonly most: number
  /**
   * Selects these columns of posts in the order in which they are to be listed; the reader's ids of user and person are $1
   * and $2, the values follow from $3.
   */
  which(columns: string): string
  readonly values: readonly unknown[]
}

/** A post, with what of it may change at any time; the rest are its contents. */
export const postForm = columnForm({
  id: number('id'),
  createdAt: moment('created_at'),
  commentsCount: number('comments_count'),
  likesCount: number('likes_count'),
  resharesCount: number('reshares_count'),
  interactedAt: moment('interacted_at'),
  authorId: number('author_id'),
  rootId: numberOrNull('root_id'),
})

/** Somebody who has written one of them or is mentioned in one. */
export const personForm = columnForm({ ...personColumns, nsfw: truth('people.id = any(keys.nsfw)') })

export const mentionForm = columnForm<PersonOfOne>({ ownerId: number('post_id'), personId: number('person_id') })

export const photoForm = columnForm({
  ownerId: number('post_id'),
  height: numberOrNull('height'),
  width: numberOrNull('width'),
  name: text('name'),
  remotePath: textOrNull('remote_path'),
  text: textOrNull(SHOWN_ALT_TEXT),
})

const own = hasRow(`
  poll_participations
  where poll_participations.poll_id = polls.id and poll_participations.author_id = $2
    and poll_participations.poll_answer_id = poll_answers.id`)

/** What an answer of a poll was given, and whether the reader has given it. */
export const choiceForm = columnForm({
  id: number('poll_answers.id'),
  voteCount: number('vote_count'),
  own: truth(own),
})

/** What the reader has done with them. */
export const viewerActions = viewerActionsForm({
  liked: 'post_id as id from likes where author_id = $2 and post_id = any(page.ids) and positive',
  reshared: 'root_id as id from posts where author_id = $2 and root_id = any(page.ids)',
  subscribed: 'post_id as id from participations where author_id = $2 and post_id = any(page.ids)',
  reported: 'post_id as id from reports where user_id = $1 and post_id = any(page.ids)',
})

/** All in one row. */
export interface FoundPosts {
  readonly posts: Written
  readonly roots: Written
  readonly people: Written
  readonly mentions: Written
  readonly photos: Written
  readonly choices: Written
  readonly actions: Written
}

/**
 * What is shown of some posts. Whatever belongs to them is looked up for all of them at once and shared out by whoever reads it:
 * to look at each post by itself costs several times as much, and so does each join that has to be set up.
 */
export function postsStatement({ which, most }: Pick<PostQuery, 'which' | 'most'>): string {
  return `
    with page as materialized (
      select
        ${postForm.select} as posts,
        array_agg(id) || array_agg(root_id) as ids, array_agg(root_id) as root_ids, array_agg(author_id) as author_ids
      from (select * from (${which(columns)}) as found limit ${most}) as found
    )
    select posts, roots, ${people} as people, mentions, ${photos} as photos, ${choices} as choices, ${viewerActions.select} as actions
    from page
    cross join lateral (
      select ${postForm.select} as roots, array_agg(author_id) as author_ids from posts where id = any(page.root_ids)
    ) as behind
    cross join lateral (
      select ${mentionForm.select} as mentions, array_agg(person_id) as person_ids
      from (select post_id, person_id from mentions where post_id = any(page.ids) order by id) as mention
    ) as mentioning`
}

/** A chain of reshares ends somewhere. */
export const LONGEST_CHAIN = 20
const MOST_ON_CHAINS = 2_000

/** The posts on the way from these to what they show in the end: reshares of reshares come from other pods. */
export function alongChains(reshareIds: string): Omit<PostQuery, 'values'> {
  return {
    name: 'posts along chains',
    most: MOST_ON_CHAINS,
    which: (columns) => `
      with recursive chain as (
        select posts.root_id as id, 1 as depth from posts where posts.id = any(${reshareIds}::bigint[])
        union
        select posts.root_id, chain.depth + 1 from chain join posts on posts.id = chain.id
        where chain.depth < ${LONGEST_CHAIN}
      )
      select ${columns}
      from (select distinct id from chain) as step
      cross join lateral (select * from posts where posts.id = step.id offset 0) as posts`,
  }
}

const columns = `
  posts.id, posts.created_at, posts.comments_count, posts.likes_count, posts.reshares_count, posts.interacted_at,
  posts.author_id, posts.root_id`

const people = `(
  select ${personForm.select}
  from (
    select ids, array(select person_id from profiles where profiles.nsfw and person_id = any(ids)) as nsfw
    from (select page.author_ids || behind.author_ids || mentioning.person_ids as ids offset 0) as keys
    offset 0
  ) as keys
  join people on people.id = any(keys.ids)
)`

const photos = `(
  select ${photoForm.select} from (select * from photos where post_id = any(page.ids) order by position, id) as photos
)`

const choices = `(
  select ${choiceForm.select}
  from polls join poll_answers on poll_answers.poll_id = polls.id
  where polls.post_id = any(page.ids)
)`
