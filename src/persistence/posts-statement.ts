import type { Belonging } from './belongings.js'
import { type ColumnLists, columnLists, momentOf } from './column-lists.js'
import { hasRow } from './has-row.js'
import type { PersonOfOne } from './people-of-page.js'

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
interface PostRow {
  readonly id: number
  readonly guid: string
  readonly commentsCount: number
  readonly likesCount: number
  readonly resharesCount: number
  readonly interactedAt: number
  readonly authorId: number
  readonly rootId: number | null
}

/** Somebody who has written one of them or is mentioned in one. */
interface PersonRow {
  readonly id: number
  readonly guid: string
  readonly address: string
  readonly name: string
  readonly avatarUrl: string | null
  readonly nsfw: boolean
}

interface PhotoRow extends Belonging {
  readonly name: string
  readonly remotePath: string | null
  readonly height: number | null
  readonly width: number | null
}

/** What an answer of a poll was given, and whether the reader has given it. */
export interface ChoiceRow {
  readonly id: number
  readonly voteCount: number
  readonly own: boolean
}

/** All in one row. */
export interface FoundPosts {
  readonly posts: ColumnLists<PostRow>
  readonly roots: ColumnLists<PostRow>
  readonly people: ColumnLists<PersonRow>
  readonly mentions: ColumnLists<PersonOfOne>
  readonly photos: ColumnLists<PhotoRow>
  readonly choices: ColumnLists<ChoiceRow>
  /** Ids of those with which the reader has done something. */
  readonly liked: readonly number[]
  readonly reshared: readonly number[]
  readonly subscribed: readonly number[]
  readonly reported: readonly number[]
}

/**
 * What is shown of some posts. Whatever belongs to them is looked up for all of them at once and shared out by whoever reads it:
 * to look at each post by itself costs several times as much, and so does each join that has to be set up.
 */
export function postsStatement({ which, most }: Pick<PostQuery, 'which' | 'most'>): string {
  return `
    with page as materialized (
      select
        ${columnLists<PostRow>(postColumns)} as posts,
        array_agg(id) || array_agg(root_id) as ids, array_agg(root_id) as root_ids, array_agg(author_id) as author_ids
      from (select * from (${which(columns)}) as found limit ${most}) as found
    )
    select
      posts, ${roots} as roots, ${people} as people, ${ofReader}, ${mentions} as mentions, ${photos} as photos,
      ${choices} as choices
    from page`
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
  posts.id, posts.guid, posts.comments_count, posts.likes_count, posts.reshares_count, posts.interacted_at,
  posts.author_id, posts.root_id`

const postColumns = {
  id: 'id',
  guid: 'guid',
  commentsCount: 'comments_count',
  likesCount: 'likes_count',
  resharesCount: 'reshares_count',
  interactedAt: momentOf('interacted_at'),
  authorId: 'author_id',
  rootId: 'root_id',
}

const roots = `(select ${columnLists<PostRow>(postColumns)} from posts where posts.id = any(page.root_ids))`

const personColumns = {
  id: 'people.id',
  guid: 'guid',
  address: 'address',
  name: 'name',
  avatarUrl: 'avatar_url',
  nsfw: 'people.id = any(keys.nsfw)',
}

const people = `(
  select ${columnLists<PersonRow>(personColumns)}
  from (
    select ids, array(select person_id from profiles where profiles.nsfw and person_id = any(ids)) as nsfw
    from (
      select
        page.author_ids
        || array(select author_id from posts where posts.id = any(page.root_ids))
        || array(select person_id from mentions where post_id = any(page.ids)) as ids
      offset 0
    ) as keys
    offset 0
  ) as keys
  join people on people.id = any(keys.ids)
)`

const ofReader = `
  array_to_json(array(
    select post_id from likes where author_id = $2 and post_id = any(page.ids) and positive
  )) as liked,
  array_to_json(array(select root_id from posts where author_id = $2 and root_id = any(page.ids))) as reshared,
  array_to_json(array(
    select post_id from participations where author_id = $2 and post_id = any(page.ids)
  )) as subscribed,
  array_to_json(array(select post_id from reports where user_id = $1 and post_id = any(page.ids))) as reported`

const mentions = `(
  select ${columnLists<PersonOfOne>({ ownerId: 'post_id', personId: 'person_id' })}
  from (select post_id, person_id from mentions where post_id = any(page.ids) order by id) as mention
)`

const photoColumns = {
  ownerId: 'post_id',
  name: 'name',
  remotePath: 'remote_path',
  height: 'height',
  width: 'width',
}

const photos = `(
  select ${columnLists<PhotoRow>(photoColumns)}
  from (select * from photos where post_id = any(page.ids) order by position, id) as photo
)`

const own = hasRow(`
  poll_participations
  where poll_participations.poll_id = polls.id and poll_participations.author_id = $2
    and poll_participations.poll_answer_id = poll_answers.id`)

const choices = `(
  select ${columnLists<ChoiceRow>({ id: 'poll_answers.id', voteCount: 'vote_count', own })}
  from polls
  join poll_answers on poll_answers.poll_id = polls.id
  where polls.post_id = any(page.ids)
)`
