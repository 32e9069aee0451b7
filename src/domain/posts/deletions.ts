import type { Knex } from 'knex'
import { enqueueJobs, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Like } from '../../persistence/models/like.js'
import { Person, Profile } from '../../persistence/models/person.js'
import { Photo } from '../../persistence/models/photo.js'
import { Post } from '../../persistence/models/post.js'
import { findPostsEmptyWithoutPhotos } from '../../persistence/posts/destroy-entities.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'
import { newCommentRetraction, newPostRetraction, recipientsUnderPost } from './new-retractions.js'
import { commentNotFound, mayShowPost, postNotFound, requireComment, requirePost } from './post-access.js'
import { retractEntity } from './retract.js'

/** Deletes a post of the viewer with its interactions. Reshares of it remain without their root. */
export async function deletePost(services: Services, viewer: Viewer, guid: string): Promise<void> {
  const post = await Post.findReadable(services.db, viewer, guid)
  // Own posts need no scope to read: deleting a private one is checked with `private:modify` below.
  const isOwn = post?.authorId === viewer.personId
  if (!post || !(isOwn || mayShowPost(viewer, post))) {
    throw postNotFound()
  }
  if (!isOwn) throw new Refusal('not_author', 'This post is not yours.')
  if (!Post.isSentPublicly(post) && !viewer.scopes.has('private:modify')) {
    throw new Refusal('insufficient_scope', 'Deleting a private post needs the scope private:modify.')
  }
  const wasDeleted = await inRequestTransaction(services, (transaction) =>
    retractEntity(services, transaction, newPostRetraction(post, viewer.personId)),
  )
  if (!wasDeleted) throw postNotFound()
}

/** Deletes a comment. Allowed for its author and for the author of the post. */
export async function deleteComment(
  services: Services,
  viewer: Viewer,
  target: { readonly postGuid: string; readonly commentGuid: string },
): Promise<void> {
  const post = await requirePost(services, viewer, target.postGuid)
  const comment = await requireComment(services, viewer, post, target.commentGuid)
  if (![comment.authorId, post.authorId].includes(viewer.personId)) {
    throw new Refusal('not_author', 'Neither this comment nor its post is yours.')
  }

  const wasDeleted = await inRequestTransaction(services, async (transaction) => {
    return retractEntity(services, transaction, await newCommentRetraction(transaction, comment, post, viewer.personId))
  })
  if (!wasDeleted) throw commentNotFound()
}

/** Deletes the viewer's like of a post or of a comment. */
export async function deleteLike(
  services: Services,
  viewer: Viewer,
  target: { readonly postGuid: string; readonly commentGuid?: string | undefined },
): Promise<void> {
  const post = await requirePost(services, viewer, target.postGuid)
  const like = await findLike(services, viewer, post, target.commentGuid)
  if (!like) throw new Refusal('not_liked', 'You have not liked this.')

  const wasDeleted = await inRequestTransaction(services, async (transaction) => {
    await Post.lock(transaction, post.id)
    const { id, guid, authorId } = like
    return retractEntity(services, transaction, {
      kind: 'like',
      type: 'Like',
      id,
      guid,
      authorId,
      public: Post.isSentPublicly(post),
      retractedById: authorId,
      recipients: recipientsUnderPost(post, []),
    })
  })
  if (!wasDeleted) throw new Refusal('not_liked', 'You have not liked this.')
}

/** Deletes a photo of the viewer, and its post if that has no text and no other photo. */
export async function deletePhoto(services: Services, viewer: Viewer, guid: string): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    // Locked against a simultaneous post that attaches the photo.
    const photo = await Photo.query(transaction).findOne({ guid, authorId: viewer.personId }).forUpdate()
    if (!photo || !(photo.public || viewer.scopes.has('private:modify'))) {
      throw new Refusal('photo_not_found', 'You have no photo with this guid.')
    }
    const emptiedPosts = await findPostsEmptyWithoutPhotos(transaction, [photo.id])
    const { id, authorId, postId } = photo
    await retractEntity(services, transaction, {
      kind: 'photo',
      type: 'Photo',
      id,
      guid,
      authorId,
      public: photo.public,
      retractedById: authorId,
      recipients: postId === null ? { kind: 'photo', photoId: id } : { kind: 'post', postId },
    })
    for (const post of emptiedPosts)
      await retractEntity(services, transaction, newPostRetraction(post, viewer.personId))
    await removeFromProfile(services, transaction, photo)
  })
}

async function findLike(
  services: Services,
  viewer: Viewer,
  post: Post,
  commentGuid: string | undefined,
): Promise<Like | undefined> {
  if (commentGuid === undefined) return Like.query(services.db).findOne({ authorId: viewer.personId, postId: post.id })
  const comment = await requireComment(services, viewer, post, commentGuid)
  return Like.query(services.db).findOne({ authorId: viewer.personId, commentId: comment.id })
}

/** Removes a deleted photo from the author's profile and sends the profile. */
async function removeFromProfile(
  services: Services,
  transaction: Knex.Transaction,
  { authorId, name }: Photo,
): Promise<void> {
  await Person.lock(transaction, authorId)
  const profile = await Profile.query(transaction).findById(authorId).throwIfNotFound()
  const { imageUrl, imageUrlMedium, imageUrlSmall } = profile
  if (![imageUrl, imageUrlMedium, imageUrlSmall].some((url) => url?.endsWith(name))) return
  const none = { imageUrl: null, imageUrlMedium: null, imageUrlSmall: null }
  await Person.updateProfile(transaction, authorId, { ...none, updatedAt: services.now() })
  await enqueueJobs(services, transaction, [newDispatchJob(authorId, { record: 'profile', personId: authorId })])
}
