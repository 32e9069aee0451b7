import { hasRow } from './has-row.js'
import { USER } from './sight.js'

/** Streams and searches leave out what the reader has hidden. */
export function notHidden(postId: string): string {
  return `not ${hasRow(`hidden_posts as hidden where hidden.user_id = ${USER} and hidden.post_id = ${postId}`)}`
}

/** They leave out what people have written whom the reader blocks. */
export function notBlocked(authorId: string): string {
  return `not ${hasRow(`blocks where blocks.user_id = ${USER} and blocks.person_id = ${authorId}`)}`
}
