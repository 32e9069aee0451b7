import type { Knex } from 'knex'
import { named } from './database.js'

/** A post that somebody reshares, as far as it matters for that. */
export interface KnownPost {
  readonly guid: string
  readonly author: string
  readonly local: boolean
  readonly public: boolean
}

/** Something that was deleted, and who did it; there may be others. */
export interface Deleted {
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

export async function findKnownPosts(db: Knex, guids: readonly string[]): Promise<readonly KnownPost[]> {
  return guids.length === 0 ? [] : named<KnownPost>(db, 'known-posts', knownPosts, [[...guids]])
}

export async function findDeleted(db: Knex, guids: readonly string[]): Promise<readonly Deleted[]> {
  return guids.length === 0 ? [] : named<Deleted>(db, 'deleted', deleted, [[...guids]])
}

export async function findKnownParts(db: Knex, guids: readonly string[]): Promise<readonly KnownPart[]> {
  return guids.length === 0 ? [] : named<KnownPart>(db, 'known-parts', knownParts, [[...guids]])
}

const knownPosts = `
  select posts.guid, people.address as author, people.pod_id is null as local, posts.public
  from posts join people on people.id = posts.author_id
  where posts.guid = any($1)`

const deleted = `
  select tombstones.target_type as type, tombstones.guid, people.address as by
  from tombstones join people on people.id = tombstones.deleted_by_id
  where tombstones.guid = any($1)`

const knownParts = `
  select 'photo' as type, photos.guid, people.address as author
  from photos join people on people.id = photos.author_id
  where photos.guid = any($1)
  union all
  select 'poll', polls.guid, people.address
  from polls join posts on posts.id = polls.post_id join people on people.id = posts.author_id
  where polls.guid = any($1)
  union all
  select 'poll_answer', poll_answers.guid, people.address
  from poll_answers
  join polls on polls.id = poll_answers.poll_id
  join posts on posts.id = polls.post_id
  join people on people.id = posts.author_id
  where poll_answers.guid = any($1)`
