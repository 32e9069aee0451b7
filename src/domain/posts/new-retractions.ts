import type { Knex } from 'knex'
import type { Comment } from '../../persistence/models/comment.js'
import { Mention } from '../../persistence/models/mention.js'
import { Post } from '../../persistence/models/post.js'
import type { RecipientSelector } from '../outbound/outgoing-messages.js'
import type { EntityToRetract } from './retract.js'

/** The retraction of a post by its author. */
export function newPostRetraction(
  post: Pick<Post, 'id' | 'guid' | 'public'> & Partial<Pick<Post, 'publicBeforeHiding'>>,
  authorId: number,
): EntityToRetract {
  const { id, guid } = post
  return {
    kind: 'post',
    type: 'Post',
    id,
    guid,
    authorId,
    retractedById: authorId,
    public: Post.isSentPublicly(post),
    recipients: { kind: 'post', postId: id },
  }
}

/** The retraction of a comment by its author or by the author of the post. It also goes to the people whom the comment mentions. */
export async function newCommentRetraction(
  transaction: Knex.Transaction,
  { id, guid, authorId }: Pick<Comment, 'id' | 'guid' | 'authorId'>,
  post: Post,
  retractedById: number,
): Promise<EntityToRetract> {
  const isPublic = Post.isSentPublicly(post)
  const mentionedPeople = isPublic ? await Mention.query(transaction).select('personId').where({ commentId: id }) : []
  const otherPersonIds = [authorId, ...mentionedPeople.map(({ personId }) => personId)].filter(
    (other) => other !== retractedById,
  )
  return {
    kind: 'comment',
    type: 'Comment',
    id,
    guid,
    authorId,
    retractedById,
    public: isPublic,
    recipients: recipientsUnderPost(post, otherPersonIds),
  }
}

/** Recipients of the post and further people. For a remote post, only its author, whose pod relays the retraction. */
export function recipientsUnderPost(
  { id, author, authorId }: Post,
  otherPersonIds: readonly number[],
): RecipientSelector {
  if (author === undefined) throw new Error(`The author of post ${id} was not read with it.`)
  return author.podId === null
    ? { kind: 'post', postId: id, alsoPersonIds: otherPersonIds }
    : { kind: 'people', personIds: [authorId] }
}
