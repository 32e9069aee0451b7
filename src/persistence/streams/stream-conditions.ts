import { USER } from '../posts/visibility.js'
import { hasRow } from '../sql/has-row.js'

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

/** Both for posts that have been found, by an array of their ids. What is hidden is looked up for all of them at once. */
export function mayBeOn(ids: string): string {
  return `
    posts.id <> all(array(
      select hidden.post_id from hidden_posts as hidden where hidden.user_id = ${USER} and hidden.post_id = any(${ids})
    ))
    and ${notBlocked('posts.author_id')}`
}
