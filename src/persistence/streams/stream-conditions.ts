import { restrictedPeopleSql } from '../people/restricted-people.js'
import { VIEWER_PERSON_ID_SQL, VIEWER_USER_ID_SQL } from '../posts/visibility.js'
import { hasRowSql } from '../sql/has-row.js'

/** The viewer has not hidden the post. One lookup by the primary key of `hidden_posts` per post. */
export function notHiddenSql(postId: string): string {
  return `not ${hasRowSql(`hidden_posts as hidden where hidden.user_id = ${VIEWER_USER_ID_SQL} and hidden.post_id = ${postId}`)}`
}

/**
 * The viewer has not blocked the author, and the author is not restricted for the viewer. Reads all blocks of the viewer and all restricted
 * people once: a lookup per author costs more.
 */
export function notBlockedSql(authorId: string): string {
  return `${authorId} <> all(array(select blocks.person_id from blocks where blocks.user_id = ${VIEWER_USER_ID_SQL}))
    and (${authorId} in (${restrictedPeopleSql(VIEWER_USER_ID_SQL, VIEWER_PERSON_ID_SQL)})) is not true`
}

/** Both conditions for rows of `posts` whose ids are in an array. Looks up the hidden ones of all ids at once. */
export function notHiddenOrBlockedSql(ids: string): string {
  return `
    posts.id <> all(array(
      select hidden.post_id from hidden_posts as hidden where hidden.user_id = ${VIEWER_USER_ID_SQL} and hidden.post_id = any(${ids})
    ))
    and ${notBlockedSql('posts.author_id')}`
}
