import { inTransaction } from '../../persistence/database/errors.js'
import { type ListedComment, listedComment, listedComments } from '../../persistence/interactions/list-comments.js'
import { Comment } from '../../persistence/models/comment.js'
import { Mention } from '../../persistence/models/mention.js'
import { Post } from '../../persistence/models/post.js'
import { Tag } from '../../persistence/models/tag.js'
import type { Page, TimePage } from '../../persistence/sql/keyset-page.js'
import type { Pod } from '../../pod/pod.js'
import { isBlockedBy, requirePost, requireTarget, type Viewer, visibilityFor } from '../accounts/access.js'
import { dispatchAndAnnounce } from '../notifications/announce.js'
import { notifyAbout } from '../notifications/notifications.js'
import { signatureUnder } from '../outbound/relayable-signature.js'
import { newGuid } from '../posts/publish-post.js'
import { faultOfText, mentionedIn, taggedIn } from '../posts/texts.js'
import { Refusal } from '../refusals.js'
import { joinIn } from './participations.js'

type CreateCommentRefusal = 'text_invalid' | 'blocked_by_author'
type ReadCommentRefusal = 'comment_not_found'

/** All that are under a post, whoever wrote them; the oldest first, if the page names no place. */
export async function listComments(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  postGuid: string,
  page: TimePage,
): Promise<Page<ListedComment>> {
  const comments = await listedComments(pod.db, viewer, { postGuid, visibility: visibilityFor(viewer), page })
  // Where nothing was found, there may be no such post either.
  if (comments.items.length === 0) await requireTarget(pod, viewer, { postGuid })
  return comments
}

/** One that the viewer has just seen. */
export async function findComment(pod: Pick<Pod, 'db'>, viewer: Viewer, id: number): Promise<ListedComment> {
  const comment = await listedComment(pod.db, viewer, id)
  if (!comment) throw refusal('comment_not_found', 'This comment was deleted in the meantime.')
  return comment
}

export async function createComment(
  pod: Pod,
  viewer: Viewer,
  input: { readonly postGuid: string; readonly text: string },
): Promise<Comment> {
  const post = await requirePost(pod, viewer, input.postGuid)
  const text = input.text.trim()
  if (text === '') throw refusal('text_invalid', 'A comment needs some text.')
  const fault = faultOfText(text)
  if (fault !== undefined) throw refusal('text_invalid', `The text ${fault}.`)
  if (await isBlockedBy(pod, post.authorId, viewer)) {
    throw refusal('blocked_by_author', 'The author of this post has blocked you.')
  }

  const guid = newGuid()
  const createdAt = pod.now()
  const signature = await signatureUnder(pod, viewer, post, (author) => ({
    type: 'comment',
    author,
    guid,
    parent_guid: post.guid,
    text,
    created_at: createdAt,
  }))
  return inTransaction(pod.db, async (transaction) => {
    await Post.hold(transaction, post.id)
    const comment = await Comment.query(transaction)
      .insert({
        guid,
        postId: post.id,
        authorId: viewer.personId,
        text,
        createdAt,
        postCreatedAt: post.createdAt,
        ...signature,
      })
      .returning('*')
    await Tag.attach(
      transaction,
      { commentId: comment.id, createdAt: post.createdAt, isPublic: post.public },
      taggedIn(text),
    )
    await Mention.attach(transaction, { commentId: comment.id }, mentionedIn(text))
    await joinIn(pod, transaction, viewer, post)
    await Post.query(transaction)
      .findById(post.id)
      .patch({
        commentsCount: transaction.raw('comments_count + 1'),
        interactedAt: transaction.raw('greatest(interacted_at, ?)', [createdAt]),
      })
    const notifications = await notifyAbout(transaction, { comments: [comment.id] }, createdAt)
    await dispatchAndAnnounce(pod, transaction, viewer.personId, { record: 'comment', guid }, { notifications })
    return comment
  })
}

type CommentRefusal = CreateCommentRefusal | ReadCommentRefusal

function refusal(reason: CommentRefusal, message: string): Refusal<CommentRefusal> {
  return new Refusal(reason, message)
}
