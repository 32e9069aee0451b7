import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { SENT_PUBLICLY_SQL } from '../posts/visibility.js'
import { opaqueParam } from '../sql/opaque-param.js'

/** The post of a stored entity: the post itself, or the post of a comment or a poll. */
export interface ReferencedPost {
  readonly kind: 'post' | 'comment' | 'poll'
  readonly guid: string
  /** Author of the post. */
  readonly authorId: number
  readonly author: string
  readonly isLocal: boolean
  readonly isPublic: boolean
  /** The given authors who receive the private local post. Null: no restriction. */
  readonly readers: readonly string[] | null
}

/** A tombstone. An entity can have several, by different people. */
interface DeletedEntity {
  readonly type: string
  readonly guid: string
  readonly by: string
  /** The deleter is a local person. */
  readonly isLocal: boolean
}

/** A stored photo or poll. */
export interface ReferencedPart {
  readonly type: 'photo' | 'poll'
  readonly guid: string
  readonly author: string
}

/** Guids to look up. */
interface ReferenceGuids {
  readonly posts?: readonly string[]
  readonly comments?: readonly string[]
  readonly polls?: readonly string[]
  /** Guids of photos and polls. */
  readonly parts?: readonly string[]
  /** Guids to look for among tombstones. */
  readonly deleted?: readonly string[]
  /** Addresses of the authors of interactions. */
  readonly authors?: readonly string[]
}

interface References {
  readonly threadPosts: readonly ReferencedPost[]
  readonly parts: readonly ReferencedPart[]
  readonly deleted: readonly DeletedEntity[]
}

/** Finds stored posts, parts and tombstones with one statement. */
export async function findPostReferences(db: Knex, wanted: ReferenceGuids): Promise<References> {
  const { posts = [], comments = [], polls = [], parts = [], deleted = [], authors = [] } = wanted
  const guids = [posts, comments, polls, parts, deleted].map((some) => [...new Set(some)])
  const [known] = guids.some((some) => some.length > 0)
    ? await queryPrepared<References>(db, 'references', REFERENCES_SQL, [...guids, [...new Set(authors)]])
    : []
  return known ?? { threadPosts: [], parts: [], deleted: [] }
}

/**
 * Most lists are empty in most batches. Without this condition the planner may read a whole small-looking table to join it with nothing.
 */
function isNotEmpty(list: `$${number}`): string {
  return `cardinality(${opaqueParam(list, 'text[]')}) > 0`
}

/** Joins with `unnest`: for `= any(…)` of an unknown list, the planner may compare each text with each row of a table. */
const THREAD_POSTS_SQL = `
  select
    found.kind, found.guid, people.id as "authorId", people.address as author, people.pod_id is null as "isLocal",
    found.public as "isPublic",
    case when people.pod_id is null and not found.public then (
      select coalesce(json_agg(writers.address), '[]')
      from unnest(${opaqueParam('$6', 'text[]')}) as address
      join people as writers using (address)
      join users on users.person_id = found.author_id
      join contacts on contacts.user_id = users.id and contacts.person_id = writers.id
      where exists (
        select from aspect_memberships
        join post_aspects on post_aspects.aspect_id = aspect_memberships.aspect_id
        where aspect_memberships.contact_id = contacts.id and post_aspects.post_id = found.post_id
      )
    ) end as readers
  from (
    select 'post' as kind, guid, author_id, ${SENT_PUBLICLY_SQL} as public, id as post_id from unnest(${opaqueParam('$1', 'text[]')}) as guid join posts using (guid)
    union all
    select 'comment', comments.guid, posts.author_id, ${SENT_PUBLICLY_SQL}, posts.id
    from unnest(${opaqueParam('$2', 'text[]')}) as guid join comments using (guid)
    join posts on posts.id = comments.post_id
    where ${isNotEmpty('$2')}
    union all
    select 'poll', polls.guid, posts.author_id, ${SENT_PUBLICLY_SQL}, posts.id
    from unnest(${opaqueParam('$3', 'text[]')}) as guid join polls using (guid)
    join posts on posts.id = polls.post_id
    where ${isNotEmpty('$3')}
  ) as found
  join people on people.id = found.author_id`

const PARTS_SQL = `
  select 'photo' as type, photos.guid, people.address as author
  from unnest(${opaqueParam('$4', 'text[]')}) as guid join photos using (guid)
  join people on people.id = photos.author_id
  where ${isNotEmpty('$4')}
  union all
  select 'poll', polls.guid, people.address
  from unnest(${opaqueParam('$4', 'text[]')}) as guid join polls using (guid)
  join posts on posts.id = polls.post_id
  join people on people.id = posts.author_id
  where ${isNotEmpty('$4')}`

const TOMBSTONES_SQL = `
  select tombstones.target_type as type, tombstones.guid, people.address as by, people.pod_id is null as "isLocal"
  from unnest(${opaqueParam('$5', 'text[]')}) as guid join tombstones using (guid)
  join people on people.id = tombstones.deleted_by_id`

/** Returns one row with three lists. */
const REFERENCES_SQL = `
  select
    (select coalesce(json_agg(found), '[]') from (${THREAD_POSTS_SQL}) as found) as "threadPosts",
    (select coalesce(json_agg(found), '[]') from (${PARTS_SQL}) as found) as parts,
    (select coalesce(json_agg(found), '[]') from (${TOMBSTONES_SQL}) as found) as deleted`
