import { hasRow } from '../sql/has-row.js'
import { opaqueParam } from '../sql/opaque-param.js'

/** In every statement that lists posts, $1 is the user id of the reader and $2 the person id. */
export const READER_USER_ID = opaqueParam('$1', 'bigint')
export const READER_PERSON_ID = opaqueParam('$2', 'bigint')

/** The posts that a token may show: `public` ones alone, or all that the reader may see. It also applies to the reader's own posts. */
export type Visibility = 'public' | 'readable'

/** SQL conditions for visible rows of `posts`: the same rule as in `Post.readableBy`. */
export const visibilityCondition: Readonly<Record<Visibility, string>> = {
  public: 'posts.public',
  readable: `(
    posts.public or posts.author_id = ${READER_PERSON_ID}
    or ${hasRow(`post_visibilities as visible where visible.user_id = ${READER_USER_ID} and visible.post_id = posts.id`)}
  )`,
}

/**
 * SQL condition: moderators do not block this author. Their content is hidden in chunks; this condition hides it before. Streams have
 * `notBlocked` instead.
 */
export function isAuthorUnblocked(authorId: string): string {
  return `not ${hasRow(`people as blocked where blocked.id = ${authorId} and blocked.restriction = 'block'`)}`
}

/** Whether other pods know a row of `posts` as public. A hidden post is not public here. */
export const SENT_PUBLICLY = 'coalesce(posts.public_before_hiding, posts.public)'
