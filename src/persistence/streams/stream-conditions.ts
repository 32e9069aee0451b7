import { READER_PERSON_ID, READER_USER_ID } from '../posts/visibility.js'
import { hasRow } from '../sql/has-row.js'

/** The reader has not hidden the post. One lookup by the primary key of `hidden_posts` per post. */
export function notHidden(postId: string): string {
  return `not ${hasRow(`hidden_posts as hidden where hidden.user_id = ${READER_USER_ID} and hidden.post_id = ${postId}`)}`
}

/**
 * The reader has not blocked the author, and the author is not restricted by moderators, unless the reader follows them. Reads all blocks
 * of the reader and all restricted people once, by the partial index `people_restricted`: a lookup per author costs more.
 */
export function notBlocked(authorId: string): string {
  return `${authorId} <> all(array(select blocks.person_id from blocks where blocks.user_id = ${READER_USER_ID}))
    and (${authorId} in (${restrictedPeople})) is not true`
}

/** People whom moderators have silenced or blocked, without those whom the reader follows. `offset 0` keeps the index. */
const restrictedPeople = `
  select restricted.id
  from (select people.id from people where people.restriction is not null offset 0) as restricted
  where restricted.id <> ${READER_PERSON_ID} and not exists (
    select from contacts
    where contacts.user_id = ${READER_USER_ID} and contacts.person_id = restricted.id and contacts.receiving
  )`

/** Both conditions for rows of `posts` whose ids are in an array. Looks up the hidden ones of all ids at once. */
export function notHiddenOrBlocked(ids: string): string {
  return `
    posts.id <> all(array(
      select hidden.post_id from hidden_posts as hidden where hidden.user_id = ${READER_USER_ID} and hidden.post_id = any(${ids})
    ))
    and ${notBlocked('posts.author_id')}`
}
