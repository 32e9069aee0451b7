import type { Knex } from 'knex'
import type { NewJob } from '../../../jobs/outbox/enqueue-jobs.js'
import type { PostVisibility } from '../../../persistence/inbound/insert-posts.js'
import { type Counts, NO_COUNTS, raiseCounts } from '../../../persistence/inbound/raise-counts.js'
import { ENTITY_TYPES, type ReceivableEntity, STORING_ORDER } from '../../../protocol/entities/registry.js'
import type { Services } from '../../../services/services.js'
import type { IgnoredMessage, RejectedMessage, StorableMessage, StoredRecord, StoreResult } from '../batch.js'
import { countChanges } from './counter-changes.js'
import { storeAccountMigrations } from './store-account-migrations.js'
import { storeConversationMessages, storeConversations } from './store-conversations.js'
import { storeAccountDeletions, storeContacts, storeProfiles } from './store-people.js'
import { storePhotos } from './store-photos.js'
import { storeReshares, storeStatusMessages } from './store-posts.js'
import { storeComments, storeLikes, storeParticipations, storeVotes } from './store-relayables.js'
import { storeRetractions } from './store-retractions.js'

/** Stores any number of entities of one type. Times that other pods claim are clamped to `now`. */
type StoreFunction<Entity extends ReceivableEntity> = (
  services: Services,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<Entity>[],
  now: Date,
) => Promise<StoreResult<Entity>>

type EntityType = ReceivableEntity['type']

/** One function for each type; a new entity type does not compile without a line here. */
const STORE_FUNCTIONS: { readonly [Type in EntityType]: StoreFunction<Extract<ReceivableEntity, { type: Type }>> } = {
  profile: storeProfiles,
  status_message: storeStatusMessages,
  reshare: storeReshares,
  photo: storePhotos,
  comment: storeComments,
  like: storeLikes,
  poll_participation: storeVotes,
  participation: storeParticipations,
  contact: storeContacts,
  conversation: storeConversations,
  message: storeConversationMessages,
  retraction: storeRetractions,
  account_migration: storeAccountMigrations,
  account_deletion: storeAccountDeletions,
}

export interface StoredEntities {
  readonly records: readonly StoredRecord[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
  /** Public posts that were stored before, and were sent to this pod now. */
  readonly redelivered: readonly StoredRecord[]
  /** Private posts, new or stored before, that became visible to their local recipients. */
  readonly newlyVisible: readonly PostVisibility[]
  /** Counter changes that the caller raises; none if they had to be raised before a deletion. */
  readonly pendingCounts: Counts
  /** Jobs that the caller enqueues: they relay interactions with local posts. */
  readonly relayJobs: readonly NewJob[]
}

/**
 * Counters are raised as late as possible, because their row locks hold up every other transaction that counts on the same posts.
 * Deletions lower the counters, so the changes are written before the first deletion.
 */
export async function storeEntities(
  services: Services,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<ReceivableEntity>[],
  now: Date,
): Promise<StoredEntities> {
  const results: StoreResult[] = []
  let isCounted = false
  for (const type of STORING_ORDER) {
    const messagesOfType = messages.filter(({ entity }) => entity.type === type)
    if (messagesOfType.length === 0) continue
    if (ENTITY_TYPES[type].deletesOrEnds === 'always' && !isCounted) {
      isCounted = true
      await raiseCounts(transaction, countChanges(recordsOf(results), now))
    }
    const store = STORE_FUNCTIONS[type] as StoreFunction<ReceivableEntity> // the table pairs each type with its function
    results.push(await store(services, transaction, messagesOfType, now))
  }
  const records = recordsOf(results)
  return {
    records,
    rejected: results.flatMap(({ rejected }) => rejected),
    ignored: results.flatMap(({ ignored = [] }) => ignored),
    redelivered: results.flatMap(({ redelivered = [] }) => redelivered),
    newlyVisible: results.flatMap(({ newlyVisible = [] }) => newlyVisible),
    pendingCounts: isCounted ? NO_COUNTS : countChanges(records, now),
    relayJobs: results.flatMap(({ relayJobs = [] }) => relayJobs),
  }
}

function recordsOf(results: readonly StoreResult[]): readonly StoredRecord[] {
  return results.flatMap(({ records }) => records)
}
