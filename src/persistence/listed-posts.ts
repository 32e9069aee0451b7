import type { Knex } from 'knex'
import { named } from './database.js'
import { hasRow } from './has-row.js'
import type { Person } from './models/person.js'
import type { Photo } from './models/photo.js'
import type { PollAnswer } from './models/poll.js'
import type { Location, Post, PostType } from './models/post.js'
import { type Page, pageOf, seek, type TimePage } from './paged.js'

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

/** Which posts of a person: those for everybody, those the reader may see, or all there are. */
export type Reach = 'public' | 'readable' | 'all'

const reaches: Readonly<Record<Reach, string>> = {
  public: 'and posts.public',
  readable: `and (posts.public or ${hasRow('post_visibilities where user_id = $1 and post_visibilities.post_id = posts.id')})`,
  all: '',
}

/** What one person has written, hidden or not. */
export async function listedPostsOf(
  db: Knex,
  reader: Reader,
  { authorId, reach, page }: { readonly authorId: number; readonly reach: Reach; readonly page: TimePage },
): Promise<Page<ListedPost>> {
  const values: unknown[] = [authorId]
  const place = { time: 'posts.created_at', id: 'posts.id', firstValue: 3 } as const
  const { name, most, condition, order } = seek(page, values, place)
  const found = await listedPosts(db, reader, {
    name: `posts-of-person ${reach} ${name}`,
    most,
    which: `select posts.id from posts where posts.author_id = $3 ${reaches[reach]} ${condition} ${order}`,
    values,
  })
  return pageOf(found, page)
}

/** Some posts, however they are found, with one statement. */
interface PostQuery {
  /** Names the statement. */
  readonly name: string
  /** No more than so many are found; belongs to the name. */
  readonly most: number
  /** Selects ids of posts in their order; the reader's ids of user and person are $1 and $2, the values follow from $3. */
  readonly which: string
  readonly values: readonly unknown[]
}

/** In the order in which they are found. */
async function listedPosts(
  db: Knex,
  { userId, personId }: Reader,
  { name, most, which, values }: PostQuery,
): Promise<readonly ListedPost[]> {
  const rows = await named<Row>(db, name, shown(which, most), [userId, personId, ...values])
  const posts = new Map(rows.map((row) => [row.id, row]))
  return rows
    .filter(({ place }) => place !== null)
    .toSorted((one, other) => Number(one.place) - Number(other.place))
    .map(({ rootId, place, ...post }) => ({ ...post, root: rootOf(posts.get(rootId ?? 0)) }))
}

interface Row extends Omit<ListedPost, 'root'> {
  /** Among those that were asked for; null: it is only the root of one of them. */
  readonly place: number | null
  readonly rootId: number | null
}

function rootOf(row: Row | undefined): ListedPost | undefined {
  if (row === undefined) return undefined
  const { rootId, place, ...root } = row
  return { ...root, root: undefined }
}

const summary = `
  'guid', people.guid, 'address', people.address, 'name', people.name, 'avatarUrl', people.avatar_url`

const mentionedPeople = `
  select coalesce(json_agg(json_build_object(${summary}) order by mentions.id), '[]')
  from mentions join people on people.id = mentions.person_id
  where mentions.post_id = posts.id`

const photos = `
  select coalesce(json_agg(json_build_object(
    'name', photos.name, 'remotePath', photos.remote_path, 'height', photos.height, 'width', photos.width
  ) order by photos.position, photos.id), '[]')
  from photos where photos.post_id = posts.id`

const location = `
  select json_build_object('address', locations.address, 'lat', locations.lat, 'lng', locations.lng)
  from locations where locations.post_id = posts.id`

const poll = `
  select json_build_object('guid', polls.guid, 'question', polls.question, 'answers', (
    select coalesce(json_agg(json_build_object(
      'id', poll_answers.id, 'answer', poll_answers.answer, 'voteCount', poll_answers.vote_count,
      'own', ${hasRow(`
        poll_participations
        where poll_participations.poll_id = polls.id and poll_participations.author_id = $2
          and poll_participations.poll_answer_id = poll_answers.id
      `)}
    ) order by poll_answers.position, poll_answers.id), '[]')
    from poll_answers where poll_answers.poll_id = polls.id
  ))
  from polls where polls.post_id = posts.id`

const own = `
  json_build_object(
    'liked', ${hasRow('likes where author_id = $2 and post_id = posts.id and positive')},
    'reshared', ${hasRow('posts as reshares where reshares.author_id = $2 and reshares.root_id = posts.id')},
    'subscribed', ${hasRow('participations where author_id = $2 and post_id = posts.id')},
    'reported', ${hasRow('reports where user_id = $1 and post_id = posts.id')}
  )`

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
    ), roots as (
      select chain.reshare_id, posts.id
      from chain join posts on posts.id = chain.id
      where posts.type = 'StatusMessage' and posts.public
    ), all_ids as (
      select id from found union select id from roots
    )
    select
      posts.id, posts.guid, posts.type, posts.public, posts.text,
      posts.provider_display_name as "providerDisplayName",
      posts.comments_count as "commentsCount", posts.likes_count as "likesCount", posts.reshares_count as "resharesCount",
      posts.interacted_at as "interactedAt", posts.created_at as "createdAt",
      found.place, roots.id as "rootId",
      json_build_object(${summary}, 'nsfw', coalesce(profiles.nsfw, false)) as author,
      ${own} as own,
      (${mentionedPeople}) as "mentionedPeople", (${photos}) as photos, (${location}) as location, (${poll}) as poll
    from all_ids
    join posts on posts.id = all_ids.id
    join people on people.id = posts.author_id
    left join profiles on profiles.person_id = people.id
    left join found on found.id = posts.id
    left join roots on roots.reshare_id = posts.id`
}
