import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

/**
 * Adds a post to the activity stream of these people; remote people have none. The statement locks the post, so that a simultaneous
 * comment either sees the new entries or is included in `interacted_at`.
 */
export async function addActivityEntries(
  transaction: Knex.Transaction,
  postId: number,
  personIds: readonly number[],
): Promise<void> {
  await queryPrepared(transaction, 'new-activity-entries', NEW_ACTIVITY_ENTRIES_SQL, [postId, personIds])
}

/**
 * Statement that moves posts forward in the activity streams of all users with an entry. It must run after the statement that has
 * counted the comments: that one locks the posts, so that all entries until then are visible.
 */
export function moveActivitySql(postIds: string): string {
  return `
    update activity_entries set interacted_at = posts.interacted_at
    from posts
    where posts.id in (${postIds})
      and activity_entries.post_id = posts.id
      and activity_entries.interacted_at < posts.interacted_at`
}

const NEW_ACTIVITY_ENTRIES_SQL = `
  insert into activity_entries (user_id, post_id, interacted_at)
  select users.id, post.id, post.interacted_at
  from (select id, interacted_at from posts where id = $1 for no key update) as post
  join users on users.person_id = any($2::bigint[])
  on conflict do nothing`
