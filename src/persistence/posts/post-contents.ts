import type { Knex } from 'knex'
import { LRUCache } from 'lru-cache'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import { queryPreparedRow } from '../database/database.js'
import type { Poll, PollAnswer } from '../models/poll.js'
import type { Location, Post, PostType } from '../models/post.js'
import { SENT_PUBLICLY_SQL } from './visibility.js'

/** The columns of a post that never change. `public`: as it was sent; a hidden post is not public here. */
export interface PostContent
  extends Pick<Post, 'id' | 'guid' | 'public' | 'text' | 'providerDisplayName' | 'createdAt'> {
  readonly type: PostType
  readonly location: Pick<Location, 'address' | 'lat' | 'lng'> | null
  readonly poll: PollContent | null
}

interface PollContent extends Pick<Poll, 'guid' | 'question'> {
  readonly answers: readonly Pick<PollAnswer, 'id' | 'answer'>[]
}

export interface PostContentKey {
  readonly id: number
  /** Milliseconds since 1970. */
  readonly createdAt: number
}

type PostContentCache = LRUCache<number, PostContent>

/** About 20 MB per process: a post takes 500 bytes and two bytes per character of its text. */
const CACHE_LIMITS = { maxSize: 20_000_000, sizeCalculation: ({ text }: PostContent) => 500 + 2 * text.length }

/**
 * Finds the contents of posts by id, from the cache of this process or the database. Deleted posts are missing in the result. Without
 * the cache, reading the contents would be a large part of the cost of a page.
 */
export async function findPostContents(
  db: Knex,
  keys: readonly PostContentKey[],
): Promise<ReadonlyMap<number, PostContent>> {
  const cache = cacheOf(db)
  const contents = new Map<number, PostContent>()
  const missingIds: number[] = []
  for (const { id, createdAt } of keys) {
    const cachedContent = cache.get(id)
    // After a restore from a backup another post may have this id.
    if (cachedContent?.createdAt.getTime() === createdAt) contents.set(id, cachedContent)
    else missingIds.push(id)
  }
  if (missingIds.length === 0) return contents
  for (const content of await readContents(db, missingIds)) {
    cache.set(content.id, content)
    contents.set(content.id, content)
  }
  return contents
}

/** One cache per database handle. A transaction has its own, which ends with it: its posts may be rolled back. */
const cacheByHandle = stateByOwner<Knex, PostContentCache>()

function cacheOf(db: Knex): PostContentCache {
  return cacheByHandle(db, () => new LRUCache(CACHE_LIMITS))
}

async function readContents(db: Knex, ids: readonly number[]): Promise<readonly PostContent[]> {
  const { contents } = await queryPreparedRow<{ readonly contents: readonly PostContentJson[] | null }>(
    db,
    'post-contents',
    CONTENTS_SQL,
    [ids],
  )
  return (contents ?? []).map((content) => ({ ...content, createdAt: new Date(content.createdAt) }))
}

interface PostContentJson extends Omit<PostContent, 'createdAt'> {
  readonly createdAt: string
}

const POLL_ANSWERS_SQL = `
  select id, answer from poll_answers where poll_answers.poll_id = polls.id order by position, id`

/** Returns the contents of posts as one JSON list. Posts, locations and polls are looked up by their unique keys. */
const CONTENTS_SQL = `
  select json_agg(content) as contents
  from (
    select
      posts.id, posts.guid, posts.type, ${SENT_PUBLICLY_SQL} as public, posts.text,
      posts.provider_display_name as "providerDisplayName", posts.created_at as "createdAt",
      (
        select row_to_json(location)
        from (select address, lat, lng from locations where locations.post_id = posts.id) as location
      ) as location,
      (
        select row_to_json(poll)
        from (
          select polls.guid, polls.question, (select json_agg(poll_answer) from (${POLL_ANSWERS_SQL}) as poll_answer) as answers
          from polls where polls.post_id = posts.id
        ) as poll
      ) as poll
    from posts where posts.id = any($1::bigint[])
  ) as content`
