import type { Static } from 'typebox'
import type { ListedComment } from '../../persistence/interactions/list-comments.js'
import type { DialectContext } from '../api/dialect.js'
import type { Comment, NewComment } from '../schemas/comments.js'
import { HIDDEN } from './moderation.js'
import { presentPersonSummary } from './people.js'

export function presentComment(comment: ListedComment, podUrl: string): Static<typeof Comment> {
  const { own, likesCount } = comment
  return Object.assign(presentWritten(comment, podUrl), {
    interactions: { liked: own.liked, likes_count: likesCount },
    reported: own.reported,
  })
}

/** The response to the author of a new comment. */
export function presentNewComment(comment: ListedComment, { url, dialect }: DialectContext): Static<typeof NewComment> {
  return dialect === 'diaspora' ? presentComment(comment, url) : presentWritten(comment, url)
}

function presentWritten({ guid, createdAt, author, text, mentionedPeople, isHidden }: ListedComment, podUrl: string) {
  return {
    guid,
    created_at: createdAt.toISOString(),
    author: presentPersonSummary(author, podUrl),
    body: text,
    mentioned_people: mentionedPeople.map((person) => presentPersonSummary(person, podUrl)),
    ...(isHidden && { moderation: HIDDEN }),
  }
}
