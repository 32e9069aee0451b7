import type { Knex } from 'knex'
import { newLiveEventAndMailJobs } from '../../../domain/notifications/enqueue-live-events.js'
import { participateJob } from '../../../jobs/definitions.js'
import { type NewJob, newJob } from '../../../jobs/outbox/enqueue-jobs.js'
import { hasOpenAccount } from '../../../persistence/accounts/open-account.js'
import { readLinkedText } from '../../../protocol/entities/registry.js'
import type { Services } from '../../../services/services.js'
import { countRemainingFetches, enqueueLinkedFetches } from '../../discovery/linked-entities.js'
import type { StoredRecord } from '../batch.js'
import { enqueueMentionedLookups } from '../mentioned-people.js'
import { receivingRulesOf } from '../receiving-rules.js'

/**
 * Enqueues lookups of mentioned people and fetches of linked entities that stored records cause, in their transaction. Returns the jobs
 * that the caller enqueues: live events of public posts, and subscriptions to their comments. A post that was fetched for an
 * archive is old, and an import sends nothing: it only looks up people.
 */
export async function enqueueLookupsAndFetches(
  services: Services,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<readonly NewJob[]> {
  await enqueueMentionedLookups(services, transaction, records)
  const networkRecords = records.filter(({ message }) => message.inbound.fetchRequest?.isForArchive !== true)
  await enqueueLinkedFetches(
    services,
    transaction,
    networkRecords.map(({ message: { entity, inbound } }) => ({
      text: readLinkedText(entity),
      depth: inbound.fetchRequest?.depth ?? 0,
      fetchesLeft: countRemainingFetches(inbound),
    })),
  )
  const posts = await publicPostsForLocalUsers(services, transaction, networkRecords)
  return [...newLiveEventAndMailJobs(services, { posts: posts.map(({ id }) => id) }), ...participationIn(posts)]
}

interface PublicPost {
  readonly id: number
  readonly guid: string
}

/** The public posts of the batch; none on a pod without users. `writeFollowUps` enqueues the live events of private posts. */
async function publicPostsForLocalUsers(
  services: Services,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<readonly PublicPost[]> {
  const posts = records.flatMap(({ id, message: { entity } }) =>
    'guid' in entity && receivingRulesOf(entity).isPublicPost(entity) ? [{ id, guid: entity.guid }] : [],
  )
  return posts.length > 0 && (await hasOpenAccount(services.db, transaction)) ? posts : []
}

/** A pod sends the comments and likes of a post only to contacts of its author and to participants. */
function participationIn(posts: readonly PublicPost[]): readonly NewJob[] {
  return posts.length === 0 ? [] : [newJob(participateJob, { postGuids: posts.map(({ guid }) => guid) })]
}
