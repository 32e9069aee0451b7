import type { Knex } from 'knex'
import { newAnnouncementJobs } from '../../domain/notifications/announcements.js'
import { participateJob } from '../../jobs/definitions.js'
import { enqueueJobs, type NewJob, newJob } from '../../jobs/outbox/outbox.js'
import type { Pod } from '../../pod/pod.js'
import { readLinkedText } from '../../protocol/entities/registry.js'
import { countRemainingFetches, enqueueLinkedFetches } from '../discovery/linked-entities.js'
import { hasOpenAccount } from '../outbound/participation-signer.js'
import type { StoredRecord } from './batch.js'
import { enqueueMentionedLookups } from './mentioned-people.js'
import { receivedType } from './received-entities.js'

/**
 * Enqueues the work that stored records cause, in their transaction: lookups of mentioned people, fetches of linked entities,
 * announcements to clients, and subscriptions to the comments on public posts. A post that was fetched for an archive is old, and an import
 * sends nothing: it only looks up people.
 */
export async function followUp(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
  notifications: readonly number[],
): Promise<void> {
  await enqueueMentionedLookups(pod, transaction, records)
  const ofTheNetwork = records.filter(({ arrival }) => arrival.message.wanted?.isForArchive !== true)
  await enqueueLinkedFetches(
    pod,
    transaction,
    ofTheNetwork.map(({ arrival: { entity, message } }) => ({
      text: readLinkedText(entity),
      depth: message.wanted?.depth ?? 0,
      fetchesLeft: countRemainingFetches(message),
    })),
  )
  const posts = await publicPostsForLocalUsers(pod, transaction, ofTheNetwork)
  await enqueueJobs(pod, transaction, [
    ...newAnnouncementJobs(pod, { notifications, posts: posts.map(({ id }) => id) }),
    ...participationIn(posts),
  ])
}

interface PublicPost {
  readonly id: number
  readonly guid: string
}

/** The public posts of the batch; none on a pod without users. A private post is announced where it is shown to its recipients. */
async function publicPostsForLocalUsers(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<readonly PublicPost[]> {
  const posts = records.flatMap(({ id, arrival: { entity } }) =>
    'guid' in entity && receivedType(entity).isPublicPost(entity) ? [{ id, guid: entity.guid }] : [],
  )
  return posts.length > 0 && (await hasOpenAccount(pod, transaction)) ? posts : []
}

/** A pod sends the comments and likes of a post only to contacts of its author and to participants. */
function participationIn(posts: readonly PublicPost[]): readonly NewJob[] {
  return posts.length === 0 ? [] : [newJob(participateJob, { postGuids: posts.map(({ guid }) => guid) })]
}
