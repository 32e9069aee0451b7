import type { Knex } from 'knex'
import { deleteCreations } from '../outbound/cancel-deliveries.js'
import { ROWS_AT_ONCE, softDeletePosts } from '../posts/delete-posts.js'
import { destroyEntities } from '../posts/destroy-entities.js'

/** With all that is under them each takes its time, and a statement has only so much. */
const POSTS_AT_ONCE = 500

/**
 * Closes people and takes away what is theirs: posts, photos, contacts, their profile, their place in conversations, and what
 * this pod kept for them as its users. What they said elsewhere stays, of somebody without a name.
 */
export async function emptyPeople(
  transaction: Knex.Transaction,
  personIds: readonly number[],
  now: Date,
): Promise<void> {
  if (personIds.length === 0) return
  const ids = [...personIds]
  await transaction.raw(closed, { ids, now })
  await destroyPosts(transaction, ids)
  for (const statement of emptied) await transaction.raw(statement, { ids })
}

/** The posts of a long history are only hidden in this transaction. */
async function destroyPosts(transaction: Knex.Transaction, authorIds: readonly number[]): Promise<void> {
  const posts: number[] = await transaction('posts').whereIn('authorId', authorIds).orderBy('id').pluck('id')
  if (posts.length > ROWS_AT_ONCE) {
    const gone = await softDeletePosts(transaction, posts)
    await deleteCreations(transaction, gone)
    return
  }
  for (let done = 0; done < posts.length; done += POSTS_AT_ONCE) {
    const gone = await destroyEntities(transaction, 'post', posts.slice(done, done + POSTS_AT_ONCE))
    await deleteCreations(transaction, gone)
  }
}

/** In one order, so that two who close the same people wait for each other, and whoever stores posts of theirs for both. */
const closed = `
  with locked as (
    select id from people where id = any(:ids) order by id for update
  )
  update people set closed_at = coalesce(closed_at, :now), name = '', avatar_url = null
  from locked where people.id = locked.id`

const theirUsers = `(select id from users where person_id = any(:ids))`

const emptied: readonly string[] = [
  `update profiles set
     first_name = null, last_name = null, image_url = null, image_url_medium = null, image_url_small = null, bio = '',
     location = '', gender = null, birthday = null, searchable = false, public_details = false, nsfw = false, tags = '{}',
     edited_at = null
   where person_id = any(:ids)`,
  // What has not arrived anywhere is not told any more: neither what goes, nor what they showed of themselves.
  `delete from outbound_messages using photos
   where author_id = any(:ids) and record = 'photo' and verb = 'create' and outbound_messages.guid = photos.guid`,
  `delete from outbound_messages using people
   where people.id = any(:ids) and record = 'profile' and outbound_messages.guid = people.guid`,
  `delete from photos where author_id = any(:ids)`,
  `delete from participations where author_id = any(:ids)`,
  `delete from mentions where person_id = any(:ids)`,
  // A conversation that nobody can read any more goes, with its messages.
  `with left_behind as (
     delete from conversation_visibilities where person_id = any(:ids) returning conversation_id
   )
   delete from conversations using left_behind
   where conversations.id = left_behind.conversation_id and not exists (
     select from conversation_visibilities as visible
     where visible.conversation_id = conversations.id and visible.person_id <> all(:ids)
   )`,
  `delete from contacts where person_id = any(:ids) or user_id in ${theirUsers}`,
  `delete from notifications where person_id = any(:ids) or user_id in ${theirUsers}`,
  `delete from aspects where user_id in ${theirUsers}`,
  `delete from blocks where user_id in ${theirUsers}`,
  `delete from tag_followings where user_id in ${theirUsers}`,
  `delete from post_visibilities where user_id in ${theirUsers}`,
  `delete from photo_visibilities where user_id in ${theirUsers}`,
  `delete from activity_entries where user_id in ${theirUsers}`,
  `delete from hidden_posts where user_id in ${theirUsers}`,
  `delete from muted_posts where user_id in ${theirUsers}`,
  `update users set role = null, email = null, settings = '{}' where person_id = any(:ids)`,
]
