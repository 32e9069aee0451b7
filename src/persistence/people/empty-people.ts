import type { Knex } from 'knex'
import { deleteCreations } from '../outbound/delete-messages.js'
import { ROW_BATCH_SIZE, softDeletePosts } from '../posts/delete-posts.js'
import { destroyEntities } from '../posts/destroy-entities.js'

/** Posts that one statement destroys, with everything below them, within the time limit of a statement. */
const POST_BATCH_SIZE = 500

/**
 * Closes people and deletes their posts, photos, contacts, profile, conversation memberships and, for local users, all user data. Their
 * comments and likes under the posts of others stay, without a name. `keepsEmail`: a mail about it follows.
 */
export async function emptyPeople(
  transaction: Knex.Transaction,
  personIds: readonly number[],
  now: Date,
  { keepsEmail = false }: { readonly keepsEmail?: boolean } = {},
): Promise<void> {
  if (personIds.length === 0) return
  const ids = [...personIds]
  await transaction.raw(CLOSED_PEOPLE_SQL, { ids, now })
  await destroyPosts(transaction, ids)
  for (const statement of deleteData) await transaction.raw(statement, { ids })
  await transaction.raw(EMPTIED_USERS_SQL, { ids, keepsEmail })
}

/** Destroys the posts. Above `ROW_BATCH_SIZE` they are only soft-deleted, and purged later. */
async function destroyPosts(transaction: Knex.Transaction, authorIds: readonly number[]): Promise<void> {
  const posts: number[] = await transaction('posts').whereIn('authorId', authorIds).orderBy('id').pluck('id')
  if (posts.length > ROW_BATCH_SIZE) {
    const destroyedEntities = await softDeletePosts(transaction, posts)
    await deleteCreations(transaction, destroyedEntities)
    return
  }
  for (let done = 0; done < posts.length; done += POST_BATCH_SIZE) {
    const destroyedEntities = await destroyEntities(transaction, 'post', posts.slice(done, done + POST_BATCH_SIZE))
    await deleteCreations(transaction, destroyedEntities)
  }
}

/** Locks in id order: other transactions that close the same people or store their posts wait and do not deadlock. */
const CLOSED_PEOPLE_SQL = `
  with locked as (
    select id from people where id = any(:ids) order by id for update
  )
  update people set closed_at = coalesce(closed_at, :now), name = '', avatar_url = null
  from locked where people.id = locked.id`

const USER_IDS_SQL = `(select id from users where person_id = any(:ids))`

const deleteData: readonly string[] = [
  `update profiles set
     first_name = null, last_name = null, image_url = null, image_url_medium = null, image_url_small = null, bio = '',
     location = '', gender = null, birthday = null, searchable = false, public_details = false, nsfw = false, tags = '{}',
     edited_at = null
   where person_id = any(:ids)`,
  // Undelivered messages about their photos and profiles are no longer sent.
  `delete from outbound_messages using photos
   where author_id = any(:ids) and record = 'photo' and verb = 'create' and outbound_messages.guid = photos.guid`,
  `delete from outbound_messages using people
   where people.id = any(:ids) and record = 'profile' and outbound_messages.guid = people.guid`,
  `delete from photos where author_id = any(:ids)`,
  `delete from participations where author_id = any(:ids)`,
  `delete from mentions where person_id = any(:ids)`,
  // Conversations without readers are deleted with their messages.
  `with left_conversations as (
     delete from conversation_visibilities where person_id = any(:ids) returning conversation_id
   )
   delete from conversations using left_conversations
   where conversations.id = left_conversations.conversation_id and not exists (
     select from conversation_visibilities as others
     where others.conversation_id = conversations.id and others.person_id <> all(:ids)
   )`,
  `delete from contacts where person_id = any(:ids) or user_id in ${USER_IDS_SQL}`,
  `delete from notifications where person_id = any(:ids) or user_id in ${USER_IDS_SQL}`,
  `delete from aspects where user_id in ${USER_IDS_SQL}`,
  `delete from blocks where user_id in ${USER_IDS_SQL}`,
  `delete from tag_followings where user_id in ${USER_IDS_SQL}`,
  `delete from post_visibilities where user_id in ${USER_IDS_SQL}`,
  `delete from photo_visibilities where user_id in ${USER_IDS_SQL}`,
  `delete from activity_entries where user_id in ${USER_IDS_SQL}`,
  `delete from hidden_posts where user_id in ${USER_IDS_SQL}`,
  `delete from muted_posts where user_id in ${USER_IDS_SQL}`,
  `delete from account_tokens where user_id in ${USER_IDS_SQL}`,
  `delete from email_undos where user_id in ${USER_IDS_SQL}`,
  `delete from mail_preferences where user_id in ${USER_IDS_SQL}`,
  `delete from mail_faults where user_id in ${USER_IDS_SQL}`,
]

const EMPTIED_USERS_SQL = `
  update users set
    role = null, unconfirmed_email = null, sign_up_network = null, settings = '{}',
    email = case when :keepsEmail then email end, email_confirmed_at = case when :keepsEmail then email_confirmed_at end
  where person_id = any(:ids)`
