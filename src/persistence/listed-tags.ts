import type { Knex } from 'knex'
import { named } from './database.js'
import { type IndexPage, type Page, pageOf } from './paged.js'
import { endOfRange } from './text-range.js'

/** Names that begin with these characters, in order. */
export async function listedTags(db: Knex, beginning: string, page: IndexPage): Promise<Page<string>> {
  const found = await named<{ name: string }>(
    db,
    'tags',
    'select name from tags where name >= $1 and name < $2 order by name offset $3 limit $4',
    [beginning, endOfRange(beginning), page.offset, page.limit + 1],
  )
  return pageOf(
    found.map(({ name }) => name),
    page,
  )
}

/** The tags that a user follows, in order. */
export async function followedTags(db: Knex, userId: number): Promise<readonly string[]> {
  const followed = await named<{ name: string }>(
    db,
    'followed-tags',
    `select tags.name from tag_followings join tags on tags.id = tag_followings.tag_id
     where tag_followings.user_id = $1
     order by tags.name`,
    [userId],
  )
  return followed.map(({ name }) => name)
}
