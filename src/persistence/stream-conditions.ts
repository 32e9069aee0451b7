import { hasRow } from './has-row.js'
import { inSight, type Sight, USER } from './sight.js'

/** Streams and searches leave out what the reader has hidden. */
export function notHidden(postId: string): string {
  return `not ${hasRow(`hidden_posts as hidden where hidden.user_id = ${USER} and hidden.post_id = ${postId}`)}`
}

/**
 * They leave out what people have written whom the reader blocks. These are few, and to know all of them takes less than to
 * look for each author.
 */
export function notBlocked(authorId: string): string {
  return `${authorId} <> all(array(select blocks.person_id from blocks where blocks.user_id = ${USER}))`
}

/** All of this for posts that have been found; their ids are rows of `id`. What is hidden is looked up for all of them at once. */
export function mayBeOn(sight: Sight, found: string): string {
  return `
    ${inSight[sight]}
    and posts.id <> all(array(
      select hidden.post_id from hidden_posts as hidden
      where hidden.user_id = ${USER} and hidden.post_id = any(array(select id from ${found}))
    ))
    and ${notBlocked('posts.author_id')}`
}
