import { hasRow } from '../sql/has-row.js'
import { opaqueParam } from '../sql/opaque-param.js'

/** In every list of posts, $1 is the user who reads it and $2 the person that this user is. */
export const USER = opaqueParam('$1', 'bigint')
export const PERSON = opaqueParam('$2', 'bigint')

/** What a token lets its reader see: what everybody does, or all that the reader may; also of their own. */
export type Visibility = 'public' | 'readable'

/** SQL conditions for visible rows of `posts`: the same rule as in `Post.readableBy`. */
export const visibilityCondition: Readonly<Record<Visibility, string>> = {
  public: 'posts.public',
  readable: `(
    posts.public or posts.author_id = ${PERSON}
    or ${hasRow(`post_visibilities as shown where shown.user_id = ${USER} and shown.post_id = posts.id`)}
  )`,
}
