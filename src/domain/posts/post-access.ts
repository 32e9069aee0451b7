import { Comment } from '../../persistence/models/comment.js'
import { Block } from '../../persistence/models/contact.js'
import { Post } from '../../persistence/models/post.js'
import { findReadablePost, type ReadablePost } from '../../persistence/posts/find-readable-post.js'
import { isAuthorUnblockedSql } from '../../persistence/posts/visibility.js'
import type { Services } from '../../services/services.js'
import { type Viewer, visibilityForViewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

/** Returns a post that the viewer may see and the token may show. Posts that the viewer has hidden are returned too. */
export async function requirePost(services: Pick<Services, 'db'>, viewer: Viewer, guid: string): Promise<Post> {
  const post = await Post.findReadable(services.db, viewer, guid).withGraphFetched('author')
  if (!post || !mayShowPost(viewer, post)) throw postNotFound()
  return post
}

/** Returns a comment of this post. Only its author finds a hidden one. */
export async function requireComment(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  { id }: Post,
  guid: string,
): Promise<Comment> {
  const comment = await Comment.query(services.db)
    .findOne({ guid, postId: id })
    .whereRaw(isAuthorUnblockedSql('comments.author_id'))
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
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  target: PostOrCommentGuids,
): Promise<ReadablePost> {
  const post = await findReadablePost(services.db, viewer, target)
  if (!post || !mayShowPost(viewer, post)) throw postNotFound()
  if (target.commentGuid !== undefined && post.commentId === null) throw commentNotFound()
  return post
}

/** True if a local person blocks the viewer. Blocks by remote people are enforced by their own pods. */
export async function isViewerBlockedBy(
  services: Pick<Services, 'db'>,
  personId: number,
  viewer: Viewer,
): Promise<boolean> {
  return Block.exists(services.db, { by: personId, personId: viewer.personId })
}

export function postNotFound(): Refusal {
  return new Refusal('post_not_found', 'This post does not exist, or you may not read it.')
}

export function commentNotFound(): Refusal {
  return new Refusal('comment_not_found', 'This post has no comment with this guid.')
}
