import type { FastifyRequest } from 'fastify'
import type { ErrorReason } from '../server/error-reasons.js'

type Messages = Readonly<Partial<Record<ErrorReason, string>>>

const POST_OR_COMMENT_MISSING = 'Post or comment with provided guid could not be found'
const likesOfComment = { post_not_found: POST_OR_COMMENT_MISSING, comment_not_found: POST_OR_COMMENT_MISSING }
const REQUEST_INVALID = 'Request invalid'
const MAY_NOT_LIKE = 'User is not allowed to like'
const CONVERSATION_INVALID = "Couldn't accept or process the conversation"

/** The messages that the documentation of the diaspora* API lists: https://diaspora.github.io/api-documentation. */
const BY_REASON: Messages = {
  post_not_found: 'Post with provided guid could not be found',
  comment_not_found: 'Comment not found for the given post',
  person_not_found: 'User with provided guid could not be found',
  conversation_not_found: 'Conversation with provided guid could not be found',
  already_reported: 'This item already has been reported by this user',
  already_liked: 'Like already exists',
  not_liked: "Like doesn't exist",
  already_reshared: 'Reshare already exists',
  already_subscribed: 'Already subscribed',
  not_subscribed: 'Was not subscribed to this post',
  already_hidden: 'Post is already hidden',
  not_hidden: 'Post is not hidden',
  already_voted: 'There already was a vote recorded for this poll',
  already_followed: 'Tag was already followed',
  not_followed: 'Tag was not followed',
  already_blocked: 'Block already exists',
  not_blocked: "Block doesn't exist",
}

/** Operations whose messages differ. `invalid` is for every other reason with status 400 or 422. */
const BY_OPERATION: Readonly<Record<string, Messages & { readonly invalid?: string }>> = {
  changeOwnProfile: { invalid: 'Wrong value of a parameter' },
  createPost: { invalid: 'Failed to create the post' },
  deletePost: { not_author: 'Not allowed to delete the post' },
  createComment: {
    blocked_by_author: 'User is not allowed to comment',
    invalid: "Couldn't accept or process the comment",
  },
  deleteComment: { not_author: 'User not allowed to delete the comment' },
  listLikesOfComment: likesOfComment,
  likePost: { blocked_by_author: MAY_NOT_LIKE },
  likeComment: { ...likesOfComment, blocked_by_author: MAY_NOT_LIKE },
  unlikeComment: likesOfComment,
  createReshare: { invalid: 'User is not allowed to reshare' },
  reportPost: {
    already_reported: 'Post has already been reported',
    invalid: 'Request invalid, such as a missing reason',
  },
  subscribeToPost: { invalid: REQUEST_INVALID },
  mutePost: { invalid: REQUEST_INVALID },
  hidePost: { invalid: REQUEST_INVALID },
  voteInPoll: { invalid: 'The request was invalid, such as a wrong id given' },
  startConversation: { invalid: CONVERSATION_INVALID },
  writeMessage: { invalid: CONVERSATION_INVALID },
}

/** The documented message of an error that the route expects. Undefined: none is documented, or the client has another dialect. */
export function diasporaMessage(
  request: FastifyRequest,
  { status, reason }: { readonly status: number; readonly reason: ErrorReason },
): string | undefined {
  const dialect = request.authenticatedViewer?.dialect ?? request.server.services.config.clientApiDialect
  if (dialect !== 'diaspora') return undefined
  const ofOperation = BY_OPERATION[request.routeOptions.schema?.operationId ?? '']
  const invalid = status === 400 || status === 422 ? ofOperation?.invalid : undefined
  return ofOperation?.[reason] ?? BY_REASON[reason] ?? invalid
}
