import type { Knex } from 'knex'
import { LRUCache } from 'lru-cache'
import { namedRow } from '../database/database.js'
import type { Poll, PollAnswer } from '../models/poll.js'
import type { Location, Post, PostType } from '../models/post.js'

/** What nobody changes once a post is written. */
export interface PostContent
  extends Pick<Post, 'id' | 'guid' | 'public' | 'text' | 'providerDisplayName' | 'createdAt'> {
  readonly type: PostType
  readonly location: Pick<Location, 'address' | 'lat' | 'lng'> | null
  readonly poll: PollContent | null
}

interface PollContent extends Pick<Poll, 'guid' | 'question'> {
  readonly answers: readonly Pick<PollAnswer, 'id' | 'answer'>[]
}

interface Key {
  readonly id: number
  /** In milliseconds. */
  readonly createdAt: number
}

type Contents = LRUCache<number, PostContent>

/** Some twenty megabytes: a post takes half a kilobyte besides its text. */
const KEPT = { maxSize: 20_000_000, sizeCalculation: ({ text }: PostContent) => 500 + 2 * text.length }

/**
 * The contents of these posts, by their ids; of what has just been deleted there is none. They are read once and remembered,
 * because to read them for each page would be a large part of what it costs.
 */
export async function contentsOf(db: Knex, keys: readonly Key[]): Promise<ReadonlyMap<number, PostContent>> {
  const remembered = contentsIn(db)
  const found = new Map<number, PostContent>()
  const missing: number[] = []
  for (const { id, createdAt } of keys) {
    const content = remembered.get(id)
    // In a database that was restored from a backup, another post may have the number.
    if (content?.createdAt.getTime() === createdAt) found.set(id, content)
    else missing.push(id)
  }
  if (missing.length === 0) return found
  for (const content of await readContents(db, missing)) {
    remembered.set(content.id, content)
    found.set(content.id, content)
  }
  return found
}

/** Of each database; a transaction is one of its own, which takes its memory along when it ends. */
const memories = new WeakMap<Knex, Contents>()

function contentsIn(db: Knex): Contents {
  const known = memories.get(db) ?? new LRUCache(KEPT)
  memories.set(db, known)
  return known
}

async function readContents(db: Knex, ids: readonly number[]): Promise<readonly PostContent[]> {
  const { contents } = await namedRow<{ readonly contents: readonly Row[] | null }>(db, 'post-contents', statement, [
    ids,
  ])
  return (contents ?? []).map((content) => ({ ...content, createdAt: new Date(content.createdAt) }))
}

interface Row extends Omit<PostContent, 'createdAt'> {
  readonly createdAt: string
}

const answers = `
  select id, answer from poll_answers where poll_answers.poll_id = polls.id order by position, id`

const statement = `
  select json_agg(content) as contents
  from (
    select
      posts.id, posts.guid, posts.type, posts.public, posts.text,
      posts.provider_display_name as "providerDisplayName", posts.created_at as "createdAt",
      (
        select row_to_json(place)
        from (select address, lat, lng from locations where locations.post_id = posts.id) as place
      ) as location,
      (
        select row_to_json(poll)
        from (
          select polls.guid, polls.question, (select json_agg(choice) from (${answers}) as choice) as answers
          from polls where polls.post_id = posts.id
        ) as poll
      ) as poll
    from posts where posts.id = any($1::bigint[])
  ) as content`
