import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Participation } from '../../persistence/models/participation.js'
import { Post } from '../../persistence/models/post.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { postNotFound, requirePost } from '../posts/post-access.js'
import { Refusal } from '../refusals.js'
import { enqueueParticipation, unmutePost } from './participations.js'

/** Subscribes the viewer to notifications about a post. */
export async function subscribeToPost(services: Services, viewer: Viewer, postGuid: string): Promise<void> {
  const post = await requirePost(services, viewer, postGuid)
  await inRequestTransaction(services, async (transaction) => {
    await Post.lock(transaction, post.id)
    const [participation] = await Participation.subscribe(transaction, post.id, [viewer.personId])
    if (participation === undefined) throw postNotFound()
    if (participation.count > 1) throw new Refusal('already_subscribed', 'You are already subscribed to this post.')
    await unmutePost(transaction, viewer, post)
    await enqueueParticipation(services, transaction, post, participation)
  })
}

/** Ends notifications about a post until the viewer interacts with it again. No message is sent to other pods. */
export async function mutePost(services: Services, viewer: Viewer, postGuid: string): Promise<void> {
  const post = await requirePost(services, viewer, postGuid)
  await inRequestTransaction(services, async (transaction) => {
    await Post.lock(transaction, post.id)
    const deletedCount = await Participation.query(transaction)
      .delete()
      .where({ postId: post.id, authorId: viewer.personId })
    if (deletedCount === 0) throw new Refusal('not_subscribed', 'You are not subscribed to this post.')
    await transaction('mutedPosts')
      .insert({ userId: viewer.userId, postId: post.id, createdAt: services.now() })
      .onConflict()
      .ignore()
  })
}

/** Hides a post in the viewer's streams, or shows it again. */
export async function setPostHidden(
  services: Services,
  viewer: Viewer,
  postGuid: string,
  isHidden: boolean,
): Promise<void> {
  const post = await requirePost(services, viewer, postGuid)
  const mark = { userId: viewer.userId, postId: post.id }
  if (!isHidden) {
    const deletedCount = await services.db('hiddenPosts').where(mark).delete()
    if (deletedCount === 0) throw new Refusal('not_hidden', 'You have not hidden this post.')
    return
  }
  const insertedRows = await services
    .db('hiddenPosts')
    .insert({ ...mark, createdAt: services.now() })
    .onConflict()
    .ignore()
    .returning('postId')
  if (insertedRows.length === 0) throw new Refusal('already_hidden', 'You have already hidden this post.')
}
