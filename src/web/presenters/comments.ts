import type { Static } from 'typebox'
import type { ListedComment } from '../../persistence/interactions/list-comments.js'
import type { DialectContext } from '../api/dialect.js'
import type { Comment, NewComment } from '../schemas/comments.js'
import { HIDDEN } from './moderation.js'
import { presentPersonSummary } from './people.js'
import type { PodAddresses } from './picture-urls.js'

export function presentComment(comment: ListedComment, addresses: PodAddresses): Static<typeof Comment> {
  const { viewerActions, likesCount } = comment
  return Object.assign(presentWritten(comment, addresses), {
    interactions: { liked: viewerActions.liked, likes_count: likesCount },
    reported: viewerActions.reported,
  })
}

/** The response to the author of a new comment. */
export function presentNewComment(
  comment: ListedComment,
  { addresses, dialect }: DialectContext,
): Static<typeof NewComment> {
  return dialect === 'diaspora' ? presentComment(comment, addresses) : presentWritten(comment, addresses)
}

function presentWritten(
  { guid, createdAt, author, text, mentionedPeople, isHidden }: ListedComment,
  addresses: PodAddresses,
) {
  return {
    guid,
    created_at: createdAt.toISOString(),
    author: presentPersonSummary(author, addresses),
    body: text,
    mentioned_people: mentionedPeople.map((person) => presentPersonSummary(person, addresses)),
    ...(isHidden && { moderation: HIDDEN }),
  }
}
