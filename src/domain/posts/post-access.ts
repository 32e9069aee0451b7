import { Comment } from '../../persistence/models/comment.js'
import { Block } from '../../persistence/models/contact.js'
import { Post } from '../../persistence/models/post.js'
import { findReadablePost, type ReadablePost } from '../../persistence/posts/find-readable-post.js'
import { isAuthorUnblocked } from '../../persistence/posts/visibility.js'
import type { Pod } from '../../pod/pod.js'
import { type Viewer, visibilityForViewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

/** Returns a post that the viewer may see and the token may show. Posts that the viewer has hidden are returned too. */
export async function requirePost(pod: Pick<Pod, 'db'>, viewer: Viewer, guid: string): Promise<Post> {
  const post = await Post.findReadable(pod.db, viewer, guid).withGraphFetched('author')
  if (!post || !mayShowPost(viewer, post)) throw postNotFound()
  return post
}

/** Returns a comment of this post. Only its author finds a hidden one. */
export async function requireComment(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  { id }: Post,
  guid: string,
): Promise<Comment> {
  const comment = await Comment.query(pod.db)
    .findOne({ guid, postId: id })
    .whereRaw(isAuthorUnblocked('comments.author_id'))
  if (!comment || (comment.hidden && comment.authorId !== viewer.personId)) throw commentNotFound()
  return comment
}

/** Whether a token may show what its user may see. */
export function mayShowPost(viewer: Viewer, post: Pick<Post, 'public'>): boolean {
  return post.public || visibilityForViewer(viewer) === 'readable'
}

/** Guids of a post, or of a comment and its post. */
interface PostOrCommentGuids {
  readonly postGuid: string
  readonly commentGuid?: string | undefined
}

/** Checks as `requirePost` and `requireComment`, and returns only the ids that lists need. */
export async function requirePostOrComment(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  target: PostOrCommentGuids,
): Promise<ReadablePost> {
  const post = await findReadablePost(pod.db, viewer, target)
  if (!post || !mayShowPost(viewer, post)) throw postNotFound()
  if (target.commentGuid !== undefined && post.commentId === null) throw commentNotFound()
  return post
}

/** True if a local person blocks the viewer. Blocks by remote people are enforced by their own pods. */
export async function isViewerBlockedBy(pod: Pick<Pod, 'db'>, personId: number, viewer: Viewer): Promise<boolean> {
  return Block.exists(pod.db, { by: personId, personId: viewer.personId })
}

export function postNotFound(): Refusal<'post_not_found'> {
  return new Refusal('post_not_found', 'This post does not exist, or you may not read it.')
}

export function commentNotFound(): Refusal<'comment_not_found'> {
  return new Refusal('comment_not_found', 'This post has no comment with this guid.')
}
