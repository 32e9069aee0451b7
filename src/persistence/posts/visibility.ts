import { hasRow } from '../sql/has-row.js'
import { unseen } from '../sql/opaque-param.js'

/** In every list of posts, $1 is the user who reads it and $2 the person that this user is. */
export const USER = unseen('$1', 'bigint')
export const PERSON = unseen('$2', 'bigint')

/** What a token lets its reader see: what everybody does, or all that the reader may; also of their own. */
export type Sight = 'public' | 'readable'

/** Which rows of `posts` are in sight: the same rule as in `Post.readableBy`. */
export const inSight: Readonly<Record<Sight, string>> = {
  public: 'posts.public',
  readable: `(
    posts.public or posts.author_id = ${PERSON}
    or ${hasRow(`post_visibilities as shown where shown.user_id = ${USER} and shown.post_id = posts.id`)}
  )`,
}
