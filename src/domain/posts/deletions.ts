import type { Knex } from 'knex'
import { enqueueEachWith, toDispatch } from '../../jobs/outbox/outbox.js'
import { inTransaction } from '../../persistence/database/errors.js'
import { Like } from '../../persistence/models/like.js'
import { Mention } from '../../persistence/models/mention.js'
import { Person, Profile } from '../../persistence/models/person.js'
import { Photo } from '../../persistence/models/photo.js'
import { Post } from '../../persistence/models/post.js'
import { emptyWithoutPhotos } from '../../persistence/posts/destroy-entities.js'
import type { Pod } from '../../pod/pod.js'
import { mayShow, noSuchComment, noSuchPost, requireComment, requirePost, type Viewer } from '../accounts/access.js'
import type { Audience } from '../outbound/outgoing.js'
import { Refusal } from '../refusals.js'
import { type TakenBack, takeBack } from './retract.js'

type DeletionRefusal = 'not_author' | 'insufficient_scope' | 'not_liked' | 'photo_not_found'

/** A post of the viewer's own, with all that is under it; reshares of it stay, with nothing to show. */
export async function deletePost(pod: Pod, viewer: Viewer, guid: string): Promise<void> {
  const post = await Post.readableBy(pod.db, viewer, guid)
  // Whether a token may delete something private of one's own is another question than whether it may read it.
  const isOwn = post?.authorId === viewer.personId
  if (!post || !(isOwn || mayShow(viewer, post))) {
    throw noSuchPost()
  }
  if (!isOwn) throw refusal('not_author', 'This post is not yours.')
  if (!post.public && !viewer.scopes.has('private:modify')) {
    throw refusal('insufficient_scope', 'Deleting a private post needs the scope private:modify.')
  }
  const deleted = await inTransaction(pod.db, (transaction) => takeBack(pod, transaction, postToTakeBack(viewer, post)))
  if (!deleted) throw noSuchPost()
}

/** The author of a comment may delete it, and so may the author of the post it stands under. */
export async function deleteComment(
  pod: Pod,
  viewer: Viewer,
  target: { readonly postGuid: string; readonly commentGuid: string },
): Promise<void> {
  const post = await requirePost(pod, viewer, target.postGuid)
  const comment = await requireComment(pod, post, target.commentGuid)
  if (![comment.authorId, post.authorId].includes(viewer.personId)) {
    throw refusal('not_author', 'Neither this comment nor its post is yours.')
  }

  const deleted = await inTransaction(pod.db, async (transaction) => {
    const { id, guid, authorId } = comment
    const mentioned = post.public ? await Mention.query(transaction).select('personId').where({ commentId: id }) : []
    const others = [authorId, ...mentioned.map(({ personId }) => personId)].filter((other) => other !== viewer.personId)
    return takeBack(pod, transaction, {
      ...{ kind: 'comment', type: 'Comment', id, guid, authorId, public: post.public, byId: viewer.personId },
      audience: audienceUnder(post, others),
    })
  })
  if (!deleted) throw noSuchComment()
}

/** The viewer's own like of a post, or of a comment under it. */
export async function deleteLike(
  pod: Pod,
  viewer: Viewer,
  target: { readonly postGuid: string; readonly commentGuid?: string | undefined },
): Promise<void> {
  const post = await requirePost(pod, viewer, target.postGuid)
  const like = await findLike(pod, viewer, post, target.commentGuid)
  if (!like) throw refusal('not_liked', 'You have not liked this.')

  const deleted = await inTransaction(pod.db, async (transaction) => {
    await Post.hold(transaction, post.id)
    const { id, guid, authorId } = like
    return takeBack(pod, transaction, {
      ...{ kind: 'like', type: 'Like', id, guid, authorId, public: post.public, byId: authorId },
      audience: audienceUnder(post, []),
    })
  })
  if (!deleted) throw refusal('not_liked', 'You have not liked this.')
}

/** A photo of the viewer's own; a post that has nothing to show without it goes too. */
export async function deletePhoto(pod: Pod, viewer: Viewer, guid: string): Promise<void> {
  await inTransaction(pod.db, async (transaction) => {
    // Held: until now, a post may have been taking it.
    const photo = await Photo.query(transaction).findOne({ guid, authorId: viewer.personId }).forUpdate()
    if (!photo || !(photo.public || viewer.scopes.has('private:modify'))) {
      throw refusal('photo_not_found', 'You have no photo with this guid.')
    }
    const emptied = await emptyWithoutPhotos(transaction, [photo.id])
    const { id, authorId, postId } = photo
    await takeBack(pod, transaction, {
      ...{ kind: 'photo', type: 'Photo', id, guid, authorId, public: photo.public, byId: authorId },
      audience: postId === null ? { of: 'photo', photoId: id } : { of: 'post', postId },
    })
    for (const post of emptied) await takeBack(pod, transaction, postToTakeBack(viewer, post))
    await removeFromProfile(pod, transaction, photo)
  })
}

async function findLike(
  pod: Pod,
  viewer: Viewer,
  post: Post,
  commentGuid: string | undefined,
): Promise<Like | undefined> {
  if (commentGuid === undefined) return Like.query(pod.db).findOne({ authorId: viewer.personId, postId: post.id })
  const comment = await requireComment(pod, post, commentGuid)
  return Like.query(pod.db).findOne({ authorId: viewer.personId, commentId: comment.id })
}

function postToTakeBack(viewer: Viewer, post: Pick<Post, 'id' | 'guid' | 'public'>): TakenBack {
  const audience = { of: 'post', postId: post.id } as const
  const { personId } = viewer
  return {
    kind: 'post',
    type: 'Post',
    id: post.id,
    guid: post.guid,
    authorId: personId,
    byId: personId,
    public: post.public,
    audience,
  }
}

/** Everybody who has the post, and these; under the post of another pod it is for that pod to tell them. */
function audienceUnder({ id, author, authorId }: Post, others: readonly number[]): Audience {
  if (author === undefined) throw new Error(`The author of post ${id} was not read with it.`)
  return author.podId === null ? { of: 'post', postId: id, and: others } : { of: 'people', personIds: [authorId] }
}

/** Whoever has a photo as their picture has none without it, and everybody is told. */
async function removeFromProfile(pod: Pod, transaction: Knex.Transaction, { authorId, name }: Photo): Promise<void> {
  await Person.hold(transaction, authorId)
  const profile = await Profile.query(transaction).findById(authorId).throwIfNotFound()
  const { imageUrl, imageUrlMedium, imageUrlSmall } = profile
  if (![imageUrl, imageUrlMedium, imageUrlSmall].some((url) => url?.endsWith(name))) return
  const none = { imageUrl: null, imageUrlMedium: null, imageUrlSmall: null }
  await Person.edit(transaction, authorId, { ...none, updatedAt: pod.now() })
  await enqueueEachWith(pod, transaction, [toDispatch(authorId, { record: 'profile', personId: authorId })])
}

function refusal(reason: DeletionRefusal, message: string): Refusal<DeletionRefusal> {
  return new Refusal(reason, message)
}
