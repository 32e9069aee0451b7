import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { type OffsetPage, type Page, toPage } from '../sql/keyset-page.js'
import { prefixRangeEnd } from '../sql/prefix-range.js'

interface Reader {
  readonly userId: number
  readonly personId: number
}

/** Names that begin with these characters, in order: of public tags, and of those that the reader follows or has used lately. */
export async function listTagNames(
  db: Knex,
  { userId, personId }: Reader,
  beginning: string,
  page: OffsetPage,
): Promise<Page<string>> {
  const values = [beginning, prefixRangeEnd(beginning), page.offset, page.limit + 1, userId, personId]
  const found = await queryPrepared<{ name: string }>(db, 'tags', tagsInRange, values)
  return toPage(
    found.map(({ name }) => name),
    page,
  )
}

/** So many of the own posts are searched for tags that stand in nothing public. */
const OWN_POSTS = 500

const tagsInRange = `
  select name from (
    (select name from tags where name >= $1 and name < $2 and public order by name limit $3::bigint + $4::bigint)
    union
    select tags.name from tag_followings join tags on tags.id = tag_followings.tag_id
    where tag_followings.user_id = $5 and tags.name >= $1 and tags.name < $2
    union
    select tags.name
    from (select id from posts where author_id = $6 order by created_at desc, id desc limit ${OWN_POSTS}) as own
    cross join lateral (select tag_id from taggings where taggings.post_id = own.id offset 0) as taggings
    cross join lateral (select name from tags where tags.id = taggings.tag_id offset 0) as tags
    where tags.name >= $1 and tags.name < $2
  ) as found
  order by name offset $3 limit $4`

/** The tags that a user follows, in order. */
export async function listFollowedTagNames(db: Knex, userId: number): Promise<readonly string[]> {
  const followed = await queryPrepared<{ name: string }>(
    db,
    'followed-tags',
    `select tags.name from tag_followings join tags on tags.id = tag_followings.tag_id
     where tag_followings.user_id = $1
     order by tags.name`,
    [userId],
  )
  return followed.map(({ name }) => name)
}
