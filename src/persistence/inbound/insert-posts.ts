import type { Knex } from 'knex'
import { queryPrepared, queryRows } from '../database/database.js'
import { isRetractedSql } from '../models/tombstone.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { rowsAsColumns } from '../sql/rows-as-columns.js'

/** A received post, with the address of its author and the guid of its root. */
export interface ReceivedPost {
  readonly guid: string
  readonly author: string
  readonly type: 'StatusMessage' | 'Reshare'
  readonly public: boolean
  readonly text: string
  readonly providerDisplayName?: string | undefined
  readonly embed?: object | undefined
  /** The root of a reshare, which must be stored. */
  readonly rootGuid?: string | undefined
  readonly createdAt: Date
  /** The id of the request that brought it. */
  readonly trace?: string | undefined
}

export interface NewPostRow {
  readonly id: number
  readonly guid: string
}

export interface ReceivedPhoto {
  readonly guid: string
  readonly postId: number
  readonly position: number
  readonly text?: string | undefined
  readonly remotePath: string
  readonly name: string
  readonly height?: number | undefined
  readonly width?: number | undefined
  readonly createdAt: Date
}

export interface ReceivedPoll {
  readonly guid: string
  readonly postId: number
  readonly question: string
  readonly answers: readonly { readonly guid: string; readonly answer: string }[]
}

export interface ReceivedLocation {
  readonly postId: number
  readonly address: string
  readonly lat: string
  readonly lng: string
}

/**
 * Inserts posts and subscribes local authors of roots to the reshares, with one statement. Returns the new posts. Counters are raised
 * by `raiseCounts`.
 */
export async function insertPosts(
  transaction: Knex.Transaction,
  posts: readonly ReceivedPost[],
): Promise<readonly NewPostRow[]> {
  return queryPrepared<NewPostRow>(transaction, 'new-posts', NEW_POSTS_SQL, [
    ...rowsAsColumns(posts, [
      'guid',
      'author',
      'type',
      'public',
      'text',
      'providerDisplayName',
      'rootGuid',
      'createdAt',
    ]),
    posts.map(({ embed }) => embed && JSON.stringify(embed)),
    posts.map(({ trace }) => trace ?? null),
  ])
}

/** A private post that a local user can see. */
export interface PostVisibility {
  readonly userId: number
  readonly postId: number
}

/** Makes private posts with their photos visible to local users; returns the new visibilities. */
export async function insertPostVisibilities(
  transaction: Knex.Transaction,
  posts: readonly { readonly guid: string; readonly author: string; readonly userId: number }[],
): Promise<readonly PostVisibility[]> {
  if (posts.length === 0) return []
  return queryRows<PostVisibility>(transaction, NEW_VISIBILITIES_SQL, [JSON.stringify(posts)])
}

/** A stored post with the address of its author. */
interface AuthoredPost extends NewPostRow {
  readonly address: string
}

/** Finds stored posts with their authors, by guid. */
export async function findPostAuthors(db: Knex, guids: readonly string[]): Promise<ReadonlyMap<string, AuthoredPost>> {
  if (guids.length === 0) return new Map()
  const rows = await queryPrepared<AuthoredPost>(db, 'authors-of-posts', POST_AUTHORS_SQL, [guids])
  return new Map(rows.map((row) => [row.guid, row]))
}

/** Inserts the photos of posts. A stored photo of the same author without a post is attached; photos of others stay unchanged. */
export async function upsertPostPhotos(transaction: Knex.Transaction, photos: readonly ReceivedPhoto[]): Promise<void> {
  if (photos.length > 0) await transaction.raw(PHOTOS_OF_POSTS_SQL, [JSON.stringify(photos)])
}

/** Inserts polls with their answers, in order. */
export async function insertPolls(transaction: Knex.Transaction, polls: readonly ReceivedPoll[]): Promise<void> {
  if (polls.length > 0) await transaction.raw(NEW_POLLS_SQL, [JSON.stringify(polls)])
}

export async function insertLocations(
  transaction: Knex.Transaction,
  locations: readonly ReceivedLocation[],
): Promise<void> {
  if (locations.length > 0) await transaction.raw(NEW_LOCATIONS_SQL, [JSON.stringify(locations)])
}

/**
 * Inserts posts in the order of the unique key of reshares, so that two batches cannot deadlock; the caller has locked the guids.
 * Authors are locked, so that a simultaneous account deletion either deletes these posts or prevents them.
 */
const NEW_POSTS_SQL = `
  with input as (
    select * from unnest(
      ${opaqueParam('$1', 'text[]')}, $2::text[], $3::text[], $4::boolean[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::jsonb[], $10::uuid[]
    ) as row(guid, author, type, public, text, provider_display_name, root_guid, created_at, embed, trace_id)
  ), authors as (
    select id, address from people
    where address in (select author from input) and closed_at is null
    order by id for key share
  ), inserted as (
    insert into posts (
      guid, author_id, type, public, text, provider_display_name, embed, root_id, created_at, interacted_at, trace_id
    )
    select
      input.guid, authors.id, input.type, input.public, input.text, input.provider_display_name,
      input.embed, roots.id, input.created_at, input.created_at, input.trace_id
    from input
    join authors on authors.address = input.author
    -- Without this condition the planner may read a whole small-looking table to join it with nulls.
    left join (
      select id, guid from posts where cardinality(array_remove(${opaqueParam('$7', 'text[]')}, null)) > 0
    ) as roots on roots.guid = input.root_guid
    where (input.root_guid is null or roots.id is not null)
      and not ${isRetractedSql('post', 'input.guid', ['authors.id'])}
    order by authors.id, roots.id, input.guid
    on conflict do nothing
    returning id, guid, root_id, created_at
  ), participating_authors as (
    insert into participations (guid, post_id, author_id)
    select replace(gen_random_uuid()::text, '-', ''), inserted.id, people.id
    from inserted
    join posts as roots on roots.id = inserted.root_id
    join people on people.id = roots.author_id and people.pod_id is null and people.closed_at is null
    order by inserted.id
    returning post_id, author_id
  ), activity as (
    insert into activity_entries (user_id, post_id, interacted_at)
    select users.id, inserted.id, inserted.created_at
    from participating_authors
    join inserted on inserted.id = participating_authors.post_id
    join users on users.person_id = participating_authors.author_id
  )
  select id, guid from inserted`

const NEW_VISIBILITIES_SQL = `
  with visibilities as (
    select distinct input."userId" as user_id, posts.id as post_id, posts.author_id, posts.created_at
    from json_to_recordset(?::json) as input(guid text, author text, "userId" bigint)
    join posts on posts.guid = input.guid and not posts.public and posts.public_before_hiding is null
    join people on people.id = posts.author_id and people.address = input.author
  ), inserted_photos as (
    insert into photo_visibilities (user_id, photo_id)
    select visibilities.user_id, photos.id from visibilities join photos using (post_id) order by 1, 2
    on conflict do nothing
  ), inserted as (
    insert into post_visibilities (user_id, post_id, author_id, created_at)
    select user_id, post_id, author_id, created_at from visibilities order by 1, 2
    on conflict do nothing
    returning user_id, post_id
  )
  select user_id as "userId", post_id as "postId" from inserted`

const POST_AUTHORS_SQL = `
  select posts.id, posts.guid, people.address
  from unnest(${opaqueParam('$1', 'text[]')}) as guid join posts using (guid) join people on people.id = posts.author_id`

const PHOTOS_OF_POSTS_SQL = `
  insert into photos (
    guid, author_id, post_id, position, public, text, remote_path, name, height, width, created_at
  )
  select
    input.guid, posts.author_id, posts.id, input.position, posts.public, input.text, input."remotePath",
    input.name, input.height, input.width, input."createdAt"
  from json_to_recordset(?::json) as input(
    guid text, "postId" bigint, position smallint, text text, "remotePath" text, name text, height integer,
    width integer, "createdAt" timestamptz
  )
  join posts on posts.id = input."postId"
  order by input.guid
  on conflict (guid) do update set
    post_id = excluded.post_id, post_guid = null, position = excluded.position, public = excluded.public,
    text = excluded.text, remote_path = excluded.remote_path, name = excluded.name, height = excluded.height,
    width = excluded.width
  where photos.author_id = excluded.author_id and photos.post_id is null`

const NEW_POLLS_SQL = `
  with input as (
    select * from json_to_recordset(?::json) as row(guid text, "postId" bigint, question text, answers json)
  ), inserted as (
    insert into polls (guid, post_id, question)
    select guid, "postId", question from input order by guid
    on conflict do nothing
    returning id, guid
  )
  insert into poll_answers (guid, poll_id, position, answer)
  select answer.content ->> 'guid', inserted.id, answer.position - 1, answer.content ->> 'answer'
  from inserted
  join input on input.guid = inserted.guid
  cross join json_array_elements(input.answers) with ordinality as answer(content, position)
  order by 1
  on conflict do nothing`

const NEW_LOCATIONS_SQL = `
  insert into locations (post_id, address, lat, lng)
  select "postId", address, lat, lng
  from json_to_recordset(?::json) as row("postId" bigint, address text, lat text, lng text)
  order by "postId"
  on conflict do nothing`
