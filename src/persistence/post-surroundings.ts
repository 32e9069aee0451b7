import type { Knex } from 'knex'
import { named } from './database.js'

/** The post that something known here leads to: a post to itself, a comment and a poll to the post they are part of. */
export interface KnownRoot {
  readonly kind: 'post' | 'comment' | 'poll'
  readonly guid: string
  /** Of the post. */
  readonly authorId: number
  readonly author: string
  readonly local: boolean
  readonly public: boolean
}

/** Something that was deleted, and who did it; there may be others. */
interface Deleted {
  readonly type: string
  readonly guid: string
  readonly by: string
}

/** A part of a post that is known here. */
export interface KnownPart {
  readonly type: 'photo' | 'poll' | 'poll_answer'
  readonly guid: string
  readonly author: string
}

/** Guids of what is looked for. */
interface Wanted {
  readonly posts?: readonly string[]
  readonly comments?: readonly string[]
  readonly polls?: readonly string[]
  /** Of what may be part of a post. */
  readonly parts?: readonly string[]
  /** Of what may have been deleted. */
  readonly deleted?: readonly string[]
}

interface Known {
  readonly roots: readonly KnownRoot[]
  readonly parts: readonly KnownPart[]
  readonly deleted: readonly Deleted[]
}

/** Those of these that are known here, with one statement. */
export async function findSurroundings(db: Knex, wanted: Wanted): Promise<Known> {
  const { posts = [], comments = [], polls = [], parts = [], deleted = [] } = wanted
  const guids = [posts, comments, polls, parts, deleted]
  const [known] = guids.some((some) => some.length > 0)
    ? await named<Known>(db, 'surroundings', surroundings, guids)
    : []
  return known ?? { roots: [], parts: [], deleted: [] }
}

const roots = `
  select
    found.kind, found.guid, people.id as "authorId", people.address as author, people.pod_id is null as local,
    posts.public
  from (
    select 'post' as kind, guid, id as post_id from posts where guid = any($1)
    union all
    select 'comment', guid, post_id from comments where guid = any($2)
    union all
    select 'poll', guid, post_id from polls where guid = any($3)
  ) as found
  join posts on posts.id = found.post_id
  join people on people.id = posts.author_id`

const parts = `
  select 'photo' as type, photos.guid, people.address as author
  from photos join people on people.id = photos.author_id
  where photos.guid = any($4)
  union all
  select 'poll', polls.guid, people.address
  from polls join posts on posts.id = polls.post_id join people on people.id = posts.author_id
  where polls.guid = any($4)
  union all
  select 'poll_answer', poll_answers.guid, people.address
  from poll_answers
  join polls on polls.id = poll_answers.poll_id
  join posts on posts.id = polls.post_id
  join people on people.id = posts.author_id
  where poll_answers.guid = any($4)`

const tombstones = `
  select tombstones.target_type as type, tombstones.guid, people.address as by
  from tombstones join people on people.id = tombstones.deleted_by_id
  where tombstones.guid = any($5)`

/** One row that holds three lists. */
const surroundings = `
  select
    (select coalesce(json_agg(found), '[]') from (${roots}) as found) as roots,
    (select coalesce(json_agg(found), '[]') from (${parts}) as found) as parts,
    (select coalesce(json_agg(found), '[]') from (${tombstones}) as found) as deleted`
