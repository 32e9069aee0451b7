import type { Knex } from 'knex'
import { authorOf } from './author-of.js'
import { type Belonging, byOwner } from './belongings.js'
import { named } from './database.js'
import { hasRow } from './has-row.js'
import type { Person } from './models/person.js'
import type { Photo } from './models/photo.js'
import type { PollAnswer } from './models/poll.js'
import type { Location, Post, PostType } from './models/post.js'
import { type Page, pageOf, seek, type TimePage } from './paged.js'
import { inSight, type Sight } from './sight.js'

/** In whose eyes: what they have done with a post is part of what they are shown. */
export interface Reader {
  readonly userId: number
  readonly personId: number
}

export type PersonSummary = Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>

/** What a client is shown of a post, with all that belongs to it. */
export interface ListedPost
  extends Pick<
    Post,
    | 'id'
    | 'guid'
    | 'public'
    | 'text'
    | 'providerDisplayName'
    | 'commentsCount'
    | 'likesCount'
    | 'resharesCount'
    | 'interactedAt'
    | 'createdAt'
  > {
  readonly type: PostType
  readonly author: PersonSummary & { readonly nsfw: boolean }
  readonly mentionedPeople: readonly PersonSummary[]
  readonly photos: readonly Pick<Photo, 'name' | 'remotePath' | 'height' | 'width'>[]
  readonly location: Pick<Location, 'address' | 'lat' | 'lng'> | null
  readonly poll: ListedPoll | null
  /** What the reader has done with it. */
  readonly own: {
    readonly liked: boolean
    readonly reshared: boolean
    readonly subscribed: boolean
    readonly reported: boolean
  }
  /** What a reshare shows in the end, which is not another reshare; undefined also where that is gone. */
  readonly root: ListedPost | undefined
}

export interface ListedPoll {
  readonly guid: string
  readonly question: string
  readonly answers: readonly (Pick<PollAnswer, 'id' | 'answer' | 'voteCount'> & { readonly own: boolean })[]
}

/** What one person has written, hidden or not; nothing, where nobody of that name is here. */
export async function listedPostsOf(
  db: Knex,
  reader: Reader,
  { authorGuid, sight, page }: { readonly authorGuid: string; readonly sight: Sight; readonly page: TimePage },
): Promise<Page<ListedPost>> {
  const values: unknown[] = [authorGuid]
  const place = { time: 'posts.created_at', id: 'posts.id', firstValue: 3 } as const
  const { name, most, condition, order } = seek(page, values, place)
  const found = await listedPosts(db, reader, {
    name: `posts-of-person ${sight} ${name}`,
    most,
    which: `
      select posts.id from posts
      where posts.author_id = (${authorOf('$3')}) and ${inSight[sight]} ${condition} ${order}`,
    values,
  })
  return pageOf(found, page)
}

/** Some posts, however they are found, with one statement. */
export interface PostQuery {
  /** Names the statement. */
  readonly name: string
  /** No more than so many are found; belongs to the name. */
  readonly most: number
  /** Selects ids of posts in their order; the reader's ids of user and person are $1 and $2, the values follow from $3. */
  readonly which: string
  readonly values: readonly unknown[]
}

/** In the order in which they are found. */
export async function listedPosts(
  db: Knex,
  { userId, personId }: Reader,
  { name, most, which, values }: PostQuery,
): Promise<readonly ListedPost[]> {
  const [found] = await named<Found>(db, name, shown(which, most), [userId, personId, ...values])
  const rows = found?.posts ?? []
  const posts = postsIn(rows, found)
  return rows
    .filter(({ place }) => place !== null)
    .toSorted((one, other) => Number(one.place) - Number(other.place))
    .flatMap(({ id, rootId }) => {
      const post = posts.get(id)
      return post === undefined ? [] : [rootId === null ? post : { ...post, root: posts.get(rootId) }]
    })
}

/** All in one row, in lists without an order: what belongs to a post says so. Null: there is nothing of the kind. */
interface Found {
  readonly posts: readonly Row[] | null
  readonly photos: readonly (Belonging & ListedPost['photos'][number])[] | null
  readonly mentionedPeople: readonly (Belonging & PersonSummary)[] | null
  readonly locations: readonly (Belonging & NonNullable<ListedPost['location']>)[] | null
  readonly polls: readonly (Belonging & ListedPoll)[] | null
}

interface Row
  extends Omit<ListedPost, 'interactedAt' | 'createdAt' | 'photos' | 'mentionedPeople' | 'location' | 'poll' | 'root'> {
  readonly interactedAt: string
  readonly createdAt: string
  /** Among those that were asked for; null: it is only the root of one of them. */
  readonly place: number | null
  readonly rootId: number | null
}

function postsIn(rows: readonly Row[], found: Partial<Found> = {}): ReadonlyMap<number, ListedPost> {
  const [photos, mentionedPeople] = [byOwner(found.photos), byOwner(found.mentionedPeople)]
  const [locations, polls] = [byOwner(found.locations), byOwner(found.polls)]
  const posts = new Map<number, ListedPost>()
  for (const row of rows) {
    // Spelt out: to spread an object of this size costs more than to read it.
    posts.set(row.id, {
      id: row.id,
      guid: row.guid,
      type: row.type,
      public: row.public,
      text: row.text,
      providerDisplayName: row.providerDisplayName,
      commentsCount: row.commentsCount,
      likesCount: row.likesCount,
      resharesCount: row.resharesCount,
      interactedAt: new Date(row.interactedAt),
      createdAt: new Date(row.createdAt),
      author: row.author,
      own: row.own,
      photos: photos.get(row.id) ?? [],
      mentionedPeople: mentionedPeople.get(row.id) ?? [],
      location: locations.get(row.id)?.[0] ?? null,
      poll: polls.get(row.id)?.[0] ?? null,
      root: undefined,
    })
  }
  return posts
}

/** Of all that are found, at once: to look at each post by itself costs several times as much. */
const anyOfThem = 'any(array(select id from ids))'

const photos = `
  select post_id as "ownerId", name, remote_path as "remotePath", height, width
  from photos where post_id = ${anyOfThem}
  order by position, id`

const mentionedPeople = `
  select mentions.post_id as "ownerId", people.guid, people.address, people.name, people.avatar_url as "avatarUrl"
  from mentions join people on people.id = mentions.person_id
  where mentions.post_id = ${anyOfThem}
  order by mentions.id`

const locations = `
  select post_id as "ownerId", address, lat, lng from locations where post_id = ${anyOfThem}`

const answers = `
  select
    poll_answers.id, poll_answers.answer, poll_answers.vote_count as "voteCount",
    ${hasRow(`
      poll_participations
      where poll_participations.poll_id = polls.id and poll_participations.author_id = $2
        and poll_participations.poll_answer_id = poll_answers.id
    `)} as own
  from poll_answers where poll_answers.poll_id = polls.id
  order by poll_answers.position, poll_answers.id`

const polls = `
  select
    polls.post_id as "ownerId", polls.guid, polls.question,
    (select coalesce(json_agg(choice), '[]') from (${answers}) as choice) as answers
  from polls where polls.post_id = ${anyOfThem}`

const own = `
  select
    posts.id = any(array(select post_id from likes where author_id = $2 and post_id = ${anyOfThem} and positive)) as liked,
    posts.id = any(array(select root_id from posts where author_id = $2 and root_id = ${anyOfThem})) as reshared,
    posts.id = any(array(select post_id from participations where author_id = $2 and post_id = ${anyOfThem})) as subscribed,
    posts.id = any(array(select post_id from reports where user_id = $1 and post_id = ${anyOfThem})) as reported`

/** Nothing may make a join of it: on a small pod the planner would read all people for the authors of a page. */
const author = `
  select
    people.guid, people.address, people.name, people.avatar_url as "avatarUrl", coalesce(profiles.nsfw, false) as nsfw
  from people left join profiles on profiles.person_id = people.id
  where people.id = posts.author_id
  offset 0`

/** Reshares of reshares come from other pods; a chain of them ends somewhere. */
const LONGEST_CHAIN = 20

function shown(which: string, most: number): string {
  return `
    with recursive found as materialized (
      select id, row_number() over () as place from (${which}) as found limit ${most}
    ), chain as (
      select posts.id as reshare_id, posts.root_id as id, 1 as depth
      from found join posts on posts.id = found.id
      where posts.root_id is not null
      union all
      select chain.reshare_id, posts.root_id, chain.depth + 1
      from chain join posts on posts.id = chain.id
      where posts.root_id is not null and chain.depth < ${LONGEST_CHAIN}
    ), roots as materialized (
      select chain.reshare_id, posts.id
      from chain join posts on posts.id = chain.id
      where posts.type = 'StatusMessage' and posts.public
    ), ids as materialized (
      select found.id, found.place, roots.id as root_id from found left join roots on roots.reshare_id = found.id
      union all
      select distinct id, null::bigint, null::bigint from roots
    ), shown as (
      select
        posts.id, posts.guid, posts.type, posts.public, posts.text,
        posts.provider_display_name as "providerDisplayName",
        posts.comments_count as "commentsCount", posts.likes_count as "likesCount",
        posts.reshares_count as "resharesCount",
        posts.interacted_at as "interactedAt", posts.created_at as "createdAt",
        ids.place, ids.root_id as "rootId", author, own
      from ids
      join posts on posts.id = ids.id
      cross join lateral (${author}) as author
      cross join lateral (${own}) as own
    )
    select
      (select json_agg(shown) from shown) as posts,
      (select json_agg(photo) from (${photos}) as photo) as photos,
      (select json_agg(person) from (${mentionedPeople}) as person) as "mentionedPeople",
      (select json_agg(location) from (${locations}) as location) as locations,
      (select json_agg(poll) from (${polls}) as poll) as polls`
}
