import { hasRow } from './has-row.js'

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

/**
 * What is shown of some posts and may change at any time, as one row of lists; the rest are their contents. Whatever belongs to
 * them is looked up for all of them at once and shared out by whoever reads it: to look at each post by itself costs several
 * times as much, and so does each join that has to be set up.
 */
export function postsStatement({ which, most }: Pick<PostQuery, 'which' | 'most'>): string {
  return `
    with page as materialized (
      select
        json_agg(found) as posts,
        array_agg(id) || array_agg("rootId") as ids, array_agg("rootId") as "rootIds", array_agg("authorId") as "authorIds"
      from (select * from (${which(columns)}) as found limit ${most}) as found
    )
    select
      posts,
      (select json_agg(root) from (${roots}) as root) as roots,
      (select json_agg(person) from (${people}) as person) as people,
      ${ofReader},
      (select json_agg(mention) from (${mentions}) as mention) as mentions,
      (select json_agg(photo) from (${photos}) as photo) as photos,
      (select json_agg(choice) from (${choices}) as choice) as choices
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
  posts.id, posts.guid, posts.comments_count as "commentsCount", posts.likes_count as "likesCount",
  posts.reshares_count as "resharesCount", posts.interacted_at as "interactedAt", posts.author_id as "authorId",
  posts.root_id as "rootId"`

const roots = `select ${columns} from posts where posts.id = any(page."rootIds")`

/** Who has written them or is mentioned in them. */
const people = `
  select
    people.id, people.guid, people.address, people.name, people.avatar_url as "avatarUrl",
    people.id = any(keys.nsfw) as nsfw
  from (
    select ids, array(select person_id from profiles where profiles.nsfw and person_id = any(ids)) as nsfw
    from (
      select
        page."authorIds"
        || array(select author_id from posts where posts.id = any(page."rootIds"))
        || array(select person_id from mentions where post_id = any(page.ids)) as ids
      offset 0
    ) as keys
    offset 0
  ) as keys
  join people on people.id = any(keys.ids)`

/** Those of them with which the reader has done something. */
const ofReader = `
  array_to_json(array(
    select post_id from likes where author_id = $2 and post_id = any(page.ids) and positive
  )) as liked,
  array_to_json(array(select root_id from posts where author_id = $2 and root_id = any(page.ids))) as reshared,
  array_to_json(array(
    select post_id from participations where author_id = $2 and post_id = any(page.ids)
  )) as subscribed,
  array_to_json(array(select post_id from reports where user_id = $1 and post_id = any(page.ids))) as reported`

const mentions = `
  select post_id as "ownerId", person_id as "personId" from mentions where post_id = any(page.ids) order by id`

const photos = `
  select post_id as "ownerId", name, remote_path as "remotePath", height, width
  from photos where post_id = any(page.ids)
  order by position, id`

/** What each answer of their polls was given, and whether the reader has given it. */
const choices = `
  select
    poll_answers.id, poll_answers.vote_count as "voteCount",
    ${hasRow(`
      poll_participations
      where poll_participations.poll_id = polls.id and poll_participations.author_id = $2
        and poll_participations.poll_answer_id = poll_answers.id
    `)} as own
  from polls
  join poll_answers on poll_answers.poll_id = polls.id
  where polls.post_id = any(page.ids)`
