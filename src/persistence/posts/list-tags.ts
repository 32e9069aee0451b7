import type { Knex } from 'knex'
import { queryPrepared, queryRow, queryRows } from '../database/database.js'
import { type OffsetPage, type Page, toPage } from '../sql/keyset-page.js'
import { prefixRangeEnd } from '../sql/prefix-range.js'

interface TagViewer {
  readonly userId: number
  readonly personId: number
}

/** Lists names of tags with a prefix, in order: public tags, and tags that the viewer follows or uses in recent posts. */
export async function listTagNames(
  db: Knex,
  { userId, personId }: TagViewer,
  prefix: string,
  page: OffsetPage,
): Promise<Page<string>> {
  const values = [prefix, prefixRangeEnd(prefix), page.offset, page.limit + 1, userId, personId]
  const rows = await queryPrepared<{ name: string }>(db, 'tag-names', TAG_NAMES_SQL, values)
  return toPage(
    rows.map(({ name }) => name),
    page,
  )
}

/** Recent posts of the viewer that are searched for tags without public posts. */
const RECENT_OWN_POSTS = 500

/**
 * Returns a page of names in byte order. Indexes: `tags_public` for the range of public tags, the primary key of `tag_followings` for
 * followed tags, and `posts_of_author` with `taggings_post_once` for the viewer's recent posts.
 */
const TAG_NAMES_SQL = `
  select name from (
    (select name from tags where name >= $1 and name < $2 and public order by name limit $3::bigint + $4::bigint)
    union
    select tags.name from tag_followings join tags on tags.id = tag_followings.tag_id
    where tag_followings.user_id = $5 and tags.name >= $1 and tags.name < $2
    union
    select tags.name
    from (select id from posts where author_id = $6 order by created_at desc, id desc limit ${RECENT_OWN_POSTS}) as own
    cross join lateral (select tag_id from taggings where taggings.post_id = own.id offset 0) as taggings
    cross join lateral (select name from tags where tags.id = taggings.tag_id offset 0) as tags
    where tags.name >= $1 and tags.name < $2
  ) as names
  order by name offset $3 limit $4`

/** Lists the names of the tags that a user follows, in order. */
export async function listFollowedTagNames(db: Knex, userId: number): Promise<readonly string[]> {
  const followedTags = await queryPrepared<{ name: string }>(
    db,
    'followed-tags',
    `select tags.name from tag_followings join tags on tags.id = tag_followings.tag_id
     where tag_followings.user_id = $1
     order by tags.name`,
    [userId],
  )
  return followedTags.map(({ name }) => name)
}

export async function countFollowedTags(db: Knex, userId: number): Promise<number> {
  const { count } = await queryRow<{ readonly count: number }>(
    db,
    'select count(*)::integer as count from tag_followings where user_id = ?',
    [userId],
  )
  return count
}

/** The tags among these that a user follows. */
export async function findFollowedTags(
  db: Knex,
  userId: number,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await queryRows<{ readonly name: string }>(
    db,
    `select tags.name from tags join tag_followings on tag_followings.tag_id = tags.id and tag_followings.user_id = ?
     where tags.name = any(?)`,
    [userId, [...names]],
  )
  return new Set(rows.map(({ name }) => name))
}
