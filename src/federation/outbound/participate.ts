import type { Knex } from 'knex'
import { enqueuePersonalMessages } from '../../domain/outbound/outgoing-messages.js'
import type { JobGroup } from '../../jobs/outbox/job-groups.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import {
  type DeliveredParticipations,
  findNextPosts,
  findPostsToParticipateIn,
  lockParticipations,
  type PostOfPod,
} from '../../persistence/interactions/outgoing-participations.js'
import { participationGuid } from '../../persistence/models/participation.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import type { Services } from '../../services/services.js'
import { findParticipationSigner, type ParticipationSigner } from './participation-signer.js'

/**
 * Subscribes to the comments and likes of remote public posts, with participations by the account of the pod or the one that
 * PODMIN_ACCOUNT names. They are not stored as participations of a person. A repeat has the same guid and sends nothing. The number
 * that waits for a pod is limited, so that an author of thousands of posts cannot fill the delivery queue.
 */
export async function participate(
  services: Services,
  group: JobGroup<{ readonly postGuids: readonly string[] }>,
): Promise<void> {
  const signer = await findParticipationSigner(services)
  await inRequestTransaction(services, async (transaction) => {
    const postGuids = (await group.take(transaction)).flatMap((data) => data.postGuids)
    if (signer !== undefined && postGuids.length > 0) await participateIn(services, transaction, signer, postGuids)
  })
}

/** Sends the participations for the following posts of the authors whose participations were delivered. */
export async function participateInNext(services: Services, delivered: DeliveredParticipations): Promise<void> {
  const nextPosts = await findNextPosts(services.db, delivered)
  if (nextPosts.length === 0) return
  const signer = await findParticipationSigner(services)
  if (signer === undefined) return
  await inRequestTransaction(services, (transaction) => participateIn(services, transaction, signer, nextPosts))
}

async function participateIn(
  services: Services,
  transaction: Knex.Transaction,
  signer: ParticipationSigner,
  postGuids: readonly string[],
): Promise<void> {
  await lockParticipations(transaction)
  const posts = await findPostsToParticipateIn(
    transaction,
    postGuids.map((postGuid) => ({ postGuid, guid: participationGuid(signer.guid, postGuid) })),
  )
  await enqueuePersonalMessages(
    services,
    transaction,
    posts.map((post) => participationFor(post, signer)),
  )
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
