import type { Knex } from 'knex'
import { type Counts, raiseCounts } from '../../../persistence/inbound/raise-counts.js'
import type { Pod } from '../../../pod/pod.js'
import { ENTITY_TYPES, type ReceivableEntity } from '../../../protocol/entities/registry.js'
import type { Arrival, IgnoredMessage, RejectedMessage, StoredRecord, StoreResult } from '../batch.js'
import { countChanges } from './counter-changes.js'
import { storeAccountMigrations } from './store-account-migrations.js'
import { storeConversations, storeMessages } from './store-conversations.js'
import { storeAccountDeletions, storeContacts, storeProfiles } from './store-people.js'
import { storePhotos } from './store-photos.js'
import { storeReshares, storeStatusMessages } from './store-posts.js'
import { storeComments, storeLikes, storeParticipations, storeVotes } from './store-relayables.js'
import { storeRetractions } from './store-retractions.js'

/** Stores any number of entities of one type. Times that other pods claim are clamped to `now`. */
type StoreFunction<Entity extends ReceivableEntity> = (
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<Entity>[],
  now: Date,
  pod: Pod,
) => Promise<StoreResult<Entity>>

type EntityType = ReceivableEntity['type']

/**
 * One function for each type; a new entity type does not compile without a line here. The order is that of storing: parents
 * before children, so that all transactions take their locks in one direction.
 */
const storeFunctions: { readonly [Type in EntityType]: StoreFunction<Extract<ReceivableEntity, { type: Type }>> } = {
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
  message: storeMessages,
  retraction: storeRetractions,
  account_migration: storeAccountMigrations,
  account_deletion: storeAccountDeletions,
}

export interface StoredEntities {
  readonly records: readonly StoredRecord[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
  /** Counter changes that the caller still has to write; undefined: they had to be written before a deletion. */
  readonly uncounted: Counts | undefined
}

/**
 * Counters are raised as late as possible, because their row locks hold up every other transaction that counts on the same posts.
 * Deletions lower the counters, so the changes are written before the first deletion.
 */
export async function storeEntities(
  pod: Pod,
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<ReceivableEntity>[],
  now: Date,
): Promise<StoredEntities> {
  const results: StoreResult[] = []
  let isCounted = false
  for (const type of Object.keys(storeFunctions) as EntityType[]) {
    const ofType = arrivals.filter(({ entity }) => entity.type === type)
    if (ofType.length === 0) continue
    if (ENTITY_TYPES[type].ends === 'always' && !isCounted) {
      isCounted = true
      await raiseCounts(transaction, countChanges(recordsOf(results), now))
    }
    const store = storeFunctions[type] as StoreFunction<ReceivableEntity> // the table pairs each type with its function
    results.push(await store(transaction, ofType, now, pod))
  }
  const records = recordsOf(results)
  return {
    records,
    rejected: results.flatMap(({ rejected }) => rejected),
    ignored: results.flatMap(({ ignored = [] }) => ignored),
    uncounted: isCounted ? undefined : countChanges(records, now),
  }
}

function recordsOf(results: readonly StoreResult[]): readonly StoredRecord[] {
  return results.flatMap(({ records }) => records)
}
