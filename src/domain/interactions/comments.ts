import { findTrace, inRequestTransaction } from '../../persistence/database/transactions.js'
import {
  findListedComment,
  type ListedComment,
  listCommentsOfPost,
} from '../../persistence/interactions/list-comments.js'
import { Comment } from '../../persistence/models/comment.js'
import { Mention } from '../../persistence/models/mention.js'
import { Post } from '../../persistence/models/post.js'
import { Tag } from '../../persistence/models/tag.js'
import type { Page, TimePage } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import { type Viewer, visibilityForViewer } from '../accounts/viewers.js'
import { applyFilterEffects, requireUnfiltered } from '../moderation/filters/check-documents.js'
import { commentDocument } from '../moderation/filters/filter-document.js'
import { newGuid } from '../new-guid.js'
import { enqueuePublication } from '../notifications/enqueue-live-events.js'
import { notifyAbout } from '../notifications/notifications.js'
import { signOwnRelayable } from '../outbound/relayable-signature.js'
import { isViewerBlockedBy, requirePost, requirePostOrComment } from '../posts/post-access.js'
import { findTextFault, readMentionedAddresses, readTagNames } from '../posts/texts.js'
import { Refusal } from '../refusals.js'
import { participateInPost } from './participations.js'

/** Lists a page of the comments on a post: newest first before a position, otherwise oldest first. */
export async function listComments(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  postGuid: string,
  page: TimePage,
): Promise<Page<ListedComment>> {
  const comments = await listCommentsOfPost(services.db, viewer, {
    postGuid,
    visibility: visibilityForViewer(viewer),
    page,
  })
  // An empty page can mean that the post does not exist.
  if (comments.items.length === 0) await requirePostOrComment(services, viewer, { postGuid })
  return comments
}

/** Returns a comment by id. The caller has checked that the viewer may see it. */
export async function getComment(services: Pick<Services, 'db'>, viewer: Viewer, id: number): Promise<ListedComment> {
  const comment = await findListedComment(services.db, viewer, id)
  if (!comment) throw new Refusal('comment_not_found', 'This comment was deleted in the meantime.')
  return comment
}

export async function createComment(
  services: Services,
  viewer: Viewer,
  input: { readonly postGuid: string; readonly text: string },
): Promise<Comment> {
  const post = await requirePost(services, viewer, input.postGuid)
  const text = input.text.trim()
  if (text === '') throw new Refusal('text_invalid', 'A comment needs some text.')
  const fault = findTextFault(text)
  if (fault !== undefined) throw new Refusal('text_invalid', `The text ${fault}.`)
  if (await isViewerBlockedBy(services, post.authorId, viewer)) {
    throw new Refusal('blocked_by_author', 'The author of this post has blocked you.')
  }

  const guid = newGuid()
  const matchedDocuments = await requireUnfiltered(services, viewer, (author) =>
    commentDocument({ guid, author, isPublic: post.public }, text),
  )
  const createdAt = services.now()
  const signature = await signOwnRelayable(services, viewer, post, (author) => ({
    type: 'comment',
    author,
    guid,
    parent_guid: post.guid,
    text,
    created_at: createdAt,
  }))
  return inRequestTransaction(services, async (transaction) => {
    await Post.lock(transaction, post.id)
    const comment = await Comment.query(transaction)
      .insert({
        guid,
        postId: post.id,
        authorId: viewer.personId,
        text,
        createdAt,
        postCreatedAt: post.createdAt,
        traceId: findTrace(transaction),
        ...signature,
      })
      .returning('*')
    await Tag.attach(
      transaction,
      { commentId: comment.id, createdAt: post.createdAt, isPublic: post.public },
      readTagNames(text),
    )
    await Mention.attach(transaction, { commentId: comment.id }, readMentionedAddresses(text))
    await participateInPost(services, transaction, viewer, post)
    await Post.query(transaction)
      .findById(post.id)
      .patch({
        commentsCount: transaction.raw('comments_count + 1'),
        interactedAt: transaction.raw('greatest(interacted_at, ?)', [createdAt]),
      })
    const notifications = await notifyAbout(
      transaction,
      { comments: [comment.id], shouldMoveActivity: true },
      createdAt,
    )
    await enqueuePublication(services, transaction, {
      senderId: viewer.personId,
      record: { record: 'comment', guid },
      rows: { notifications },
    })
    await applyFilterEffects(services, transaction, matchedDocuments)
    return comment
  })
}
