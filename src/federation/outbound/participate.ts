import type { Knex } from 'knex'
import { enqueuePersonalMessages } from '../../domain/outbound/outgoing-messages.js'
import type { Work } from '../../jobs/outbox/outbox.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import {
  findNextPosts,
  findPostsToParticipateIn,
  lockParticipations,
  type PostOfPod,
} from '../../persistence/interactions/outgoing-participations.js'
import { participationGuid } from '../../persistence/models/participation.js'
import type { Person } from '../../persistence/models/person.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import type { Pod } from '../../pod/pod.js'
import { findPodminAccount } from './podmin-account.js'

/**
 * Subscribes to the comments and likes of remote public posts, with participations by the podmin account. They are not stored as
 * participations of that person. A repeat has the same guid and sends nothing. At most one is pending for each author, and one
 * for a pod that has never accepted any, so that an author of thousands of posts cannot fill the delivery queue.
 */
export async function participate(pod: Pod, work: Work<{ readonly postGuids: readonly string[] }>): Promise<void> {
  await inTransaction(pod, async (transaction) => {
    await work.finish(transaction)
    await participateIn(pod, transaction, work.data.postGuids)
  })
}

interface NextOptions {
  readonly podId: number
  /** The pod had accepted none before: only one was sent, and the posts of its other authors were left out. */
  readonly isFirstOfPod: boolean
}

/** After the participations in these posts have arrived, sends one for the next post of each author. */
export async function participateInNext(
  pod: Pod,
  postGuids: readonly string[],
  { podId, isFirstOfPod }: NextOptions,
): Promise<void> {
  if (postGuids.length === 0) return
  const nextPosts = await findNextPosts(pod.db, postGuids, isFirstOfPod ? podId : null)
  if (nextPosts.length === 0) return
  await inTransaction(pod, (transaction) => participateIn(pod, transaction, nextPosts))
}

async function participateIn(pod: Pod, transaction: Knex.Transaction, postGuids: readonly string[]): Promise<void> {
  const podmin = await findPodminAccount(pod, transaction)
  if (podmin === undefined) return
  await lockParticipations(transaction)
  const posts = await findPostsToParticipateIn(transaction, postGuids)
  await enqueuePersonalMessages(
    pod,
    transaction,
    posts.map((post) => participationFor(post, podmin)),
  )
}

function participationFor(post: PostOfPod, podmin: Person) {
  const guid = participationGuid(podmin.guid, post.guid)
  return {
    record: 'participation',
    guid,
    verb: 'create',
    senderId: podmin.id,
    public: false,
    entity: { type: 'participation', author: podmin.address, guid, parent_guid: post.guid, parent_type: 'Post' },
    personId: post.authorId,
    priority: DELIVERY_PRIORITY.participation,
  } as const
}
