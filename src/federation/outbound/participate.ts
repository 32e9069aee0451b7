import type { Knex } from 'knex'
import { storePersonalMessages } from '../../domain/outbound/outgoing-messages.js'
import type { JobGroup } from '../../jobs/outbox/job-groups.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import {
  deletePostponedPosts,
  findPodsWithoutWaitingParticipations,
  hasPostponedPosts,
  lockParticipations,
  type PostOfPod,
  planParticipations,
} from '../../persistence/interactions/outgoing-participations.js'
import { participationGuid } from '../../persistence/models/participation.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import type { Services } from '../../services/services.js'
import { findParticipationSigner, type ParticipationSigner } from './participation-signer.js'

/**
 * Subscribes to the comments and likes of remote public posts, with participations by the account of the pod or the one that PODMIN_ACCOUNT
 * names. They are not stored as participations of a person. A repeated participation has the same guid and is not sent again. The number of
 * participations that wait for a pod is limited, so that an author of thousands of posts cannot fill the delivery queue; other posts are
 * postponed.
 */
export async function participate(
  services: Services,
  group: JobGroup<{ readonly postGuids: readonly string[] }>,
): Promise<void> {
  const signer = await findParticipationSigner(services)
  const postponedPosts = await inRequestTransaction(services, async (transaction) => {
    const postGuids = (await group.take(transaction)).flatMap((data) => data.postGuids)
    if (signer === undefined || postGuids.length === 0) return []
    await lockParticipations(transaction)
    return participateIn(services, transaction, signer, postGuids)
  })
  if (postponedPosts.length === 0) return
  // The participations that these posts waited for may have been delivered before this transaction was committed.
  const podIds = [...new Set(postponedPosts.map(({ podId }) => podId))]
  for (const podId of await findPodsWithoutWaitingParticipations(services.db, podIds)) {
    await participateInPostponedPosts(services, podId)
  }
}

/** Sends the next postponed participations to a pod that has accepted others. */
export async function participateInPostponedPosts(services: Services, podId: number): Promise<void> {
  if (!(await hasPostponedPosts(services.db, podId))) return
  const signer = await findParticipationSigner(services)
  if (signer === undefined) return
  await inRequestTransaction(services, async (transaction) => {
    await lockParticipations(transaction)
    await participateIn(services, transaction, signer, await deletePostponedPosts(transaction, podId))
  })
}

/** Writes participations in posts, as many as may wait for each pod. Returns the postponed posts. */
async function participateIn(
  services: Services,
  transaction: Knex.Transaction,
  signer: ParticipationSigner,
  postGuids: readonly string[],
): Promise<readonly PostOfPod[]> {
  const { next, postponed } = await planParticipations(
    transaction,
    postGuids.map((postGuid) => ({ postGuid, guid: participationGuid(signer.guid, postGuid) })),
  )
  await storePersonalMessages(
    services,
    transaction,
    next.map((post) => participationFor(post, signer)),
  )
  return postponed
}

function participationFor(post: PostOfPod, signer: ParticipationSigner) {
  const guid = participationGuid(signer.guid, post.guid)
  return {
    record: 'participation',
    guid,
    verb: 'create',
    senderId: signer.personId,
    public: false,
    entity: { type: 'participation', author: signer.address, guid, parent_guid: post.guid, parent_type: 'Post' },
    personId: post.authorId,
    priority: DELIVERY_PRIORITY.participation,
  } as const
}
