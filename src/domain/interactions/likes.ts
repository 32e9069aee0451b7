import { isUniqueViolation } from '../../persistence/database/errors.js'
import { findTrace, inRequestTransaction } from '../../persistence/database/transactions.js'
import { type ListedReaction, listReactions } from '../../persistence/interactions/list-reactions.js'
import { Comment } from '../../persistence/models/comment.js'
import { Like } from '../../persistence/models/like.js'
import { Post } from '../../persistence/models/post.js'
import type { ReadablePost } from '../../persistence/posts/find-readable-post.js'
import type { OffsetPage, Page } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { newGuid } from '../new-guid.js'
import { enqueuePublication } from '../notifications/enqueue-live-events.js'
import { notifyAbout } from '../notifications/notifications.js'
import { signOwnRelayable } from '../outbound/relayable-signature.js'
import { isViewerBlockedBy, requireComment, requirePost } from '../posts/post-access.js'
import { Refusal } from '../refusals.js'
import { participateInPost } from './participations.js'

/** Lists likes of a post or of a comment, the viewer's own first. */
export function listLikes(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  { id, commentId }: Pick<ReadablePost, 'id' | 'commentId'>,
  page: OffsetPage,
): Promise<Page<ListedReaction>> {
  if (commentId === null) return listReactions(services.db, viewer, { kind: 'likes-of-post', id }, page)
  return listReactions(services.db, viewer, { kind: 'likes-of-comment', id: commentId }, page)
}

/** Likes a post or a comment. Own posts and comments can be liked too. */
export async function createLike(
  services: Services,
  viewer: Viewer,
  target: { readonly postGuid: string; readonly commentGuid?: string | undefined },
): Promise<Like> {
  const post = await requirePost(services, viewer, target.postGuid)
  const { commentGuid } = target
  const comment = commentGuid === undefined ? undefined : await requireComment(services, viewer, post, commentGuid)
  if (await isViewerBlockedBy(services, post.authorId, viewer)) {
    throw new Refusal('blocked_by_author', 'The author of this post has blocked you.')
  }

  const guid = newGuid()
  const signature = await signOwnRelayable(services, viewer, post, (author) => ({
    type: 'like',
    author,
    guid,
    parent_guid: (comment ?? post).guid,
    parent_type: comment ? 'Comment' : 'Post',
    positive: true,
  }))
  try {
    return await inRequestTransaction(services, async (transaction) => {
      await Post.lock(transaction, post.id)
      const like = await Like.query(transaction)
        .insert({
          guid,
          authorId: viewer.personId,
          ...(comment ? { commentId: comment.id } : { postId: post.id, postCreatedAt: post.createdAt }),
          createdAt: services.now(),
          traceId: findTrace(transaction),
          ...signature,
        })
        .returning('*')
      await participateInPost(services, transaction, viewer, post)
      const likedRow = comment
        ? Comment.query(transaction).findById(comment.id)
        : Post.query(transaction).findById(post.id)
      await likedRow.patch({ likesCount: transaction.raw('likes_count + 1') })
      const notifications = await notifyAbout(transaction, { likes: [like.id] }, services.now())
      await enqueuePublication(services, transaction, {
        senderId: viewer.personId,
        record: { record: 'like', guid },
        rows: { notifications },
      })
      return like
    })
  } catch (error) {
    if (!isUniqueViolation(error, comment ? 'likes_comment_once' : 'likes_post_once')) throw error
    throw new Refusal('already_liked', 'You have already liked this.')
  }
}
