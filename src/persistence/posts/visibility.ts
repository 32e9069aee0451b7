import { hasRowSql } from '../sql/has-row.js'
import { opaqueParam } from '../sql/opaque-param.js'

/** In every statement that lists posts, $1 is the user id of the viewer and $2 the person id. */
export const VIEWER_USER_ID_SQL = opaqueParam('$1', 'bigint')
export const VIEWER_PERSON_ID_SQL = opaqueParam('$2', 'bigint')

/** The posts that a token may show: `public` ones alone, or all that the viewer may see. It also applies to the viewer's own posts. */
export type Visibility = 'public' | 'readable'

/** SQL condition for rows of `posts` that a viewer may see: public, their own, or delivered to them. */
export function isReadableBySql(personId: string, userId: string): string {
  return `(
    posts.public or posts.author_id = ${personId}
    or ${hasRowSql(`post_visibilities as visible where visible.user_id = ${userId} and visible.post_id = posts.id`)}
  )`
}

/** SQL conditions for visible rows of `posts`. */
export const visibilityCondition: Readonly<Record<Visibility, string>> = {
  public: 'posts.public',
  readable: isReadableBySql(VIEWER_PERSON_ID_SQL, VIEWER_USER_ID_SQL),
}

/**
 * SQL condition: moderators do not block this author. Their content is hidden in chunks; this condition hides it before. Streams have
 * `notBlockedSql` instead.
 */
export function isAuthorUnblockedSql(authorId: string): string {
  return `not ${hasRowSql(`people as blocked where blocked.id = ${authorId} and blocked.restriction = 'block'`)}`
}

/** Whether other pods know a row of `posts` or `photos` as public. Hidden content is not public here. */
export function sentPubliclySql(table: 'posts' | 'photos'): string {
  return `coalesce(${table}.public_before_hiding, ${table}.public)`
}

export const SENT_PUBLICLY_SQL = sentPubliclySql('posts')
