import { inTransaction } from '../../persistence/database/transactions.js'
import { Participation } from '../../persistence/models/participation.js'
import { Post } from '../../persistence/models/post.js'
import type { Pod } from '../../pod/pod.js'
import type { Viewer } from '../accounts/viewers.js'
import { postNotFound, requirePost } from '../posts/post-access.js'
import { Refusal } from '../refusals.js'
import { enqueueParticipation, unmutePost } from './participations.js'

type InteractionRefusal = 'already_subscribed' | 'not_subscribed' | 'already_hidden' | 'not_hidden'

/** Subscribes the viewer to notifications about a post. */
export async function subscribeToPost(pod: Pod, viewer: Viewer, postGuid: string): Promise<void> {
  const post = await requirePost(pod, viewer, postGuid)
  await inTransaction(pod, async (transaction) => {
    await Post.lock(transaction, post.id)
    const [held] = await Participation.addReason(transaction, post.id, [viewer.personId])
    if (held === undefined) throw postNotFound()
    if (held.count > 1) throw refusal('already_subscribed', 'You are already subscribed to this post.')
    await unmutePost(transaction, viewer, post)
    await enqueueParticipation(pod, transaction, post, held)
  })
}

/** Ends notifications about a post until the viewer interacts with it again. No message is sent to other pods. */
export async function mutePost(pod: Pod, viewer: Viewer, postGuid: string): Promise<void> {
  const post = await requirePost(pod, viewer, postGuid)
  await inTransaction(pod, async (transaction) => {
    await Post.lock(transaction, post.id)
    const left = await Participation.query(transaction).delete().where({ postId: post.id, authorId: viewer.personId })
    if (left === 0) throw refusal('not_subscribed', 'You are not subscribed to this post.')
    await transaction('mutedPosts')
      .insert({ userId: viewer.userId, postId: post.id, createdAt: pod.now() })
      .onConflict()
      .ignore()
  })
}

/** Hides a post in the viewer's streams, or shows it again. */
export async function setPostHidden(pod: Pod, viewer: Viewer, postGuid: string, isHidden: boolean): Promise<void> {
  const post = await requirePost(pod, viewer, postGuid)
  const mark = { userId: viewer.userId, postId: post.id }
  if (!isHidden) {
    const shown = await pod.db('hiddenPosts').where(mark).delete()
    if (shown === 0) throw refusal('not_hidden', 'You have not hidden this post.')
    return
  }
  const insertedRows = await pod
    .db('hiddenPosts')
    .insert({ ...mark, createdAt: pod.now() })
    .onConflict()
    .ignore()
    .returning('postId')
  if (insertedRows.length === 0) throw refusal('already_hidden', 'You have already hidden this post.')
}

function refusal(reason: InteractionRefusal, message: string): Refusal<InteractionRefusal> {
  return new Refusal(reason, message)
}
