import type { Knex } from 'knex'
import {
  enqueueLiveEventsAndMails,
  newLiveEventAndMailJobs,
} from '../../../domain/notifications/enqueue-live-events.js'
import { raiseCountsAndResumeMessages } from '../../../jobs/waiting/resume-messages.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { recordFirstSignatures } from '../../../persistence/people/person-guids.js'
import { inChildSpan } from '../../../services/in-span.js'
import type { Services } from '../../../services/services.js'
import type { ActiveSpan } from '../../../services/tracer.js'
import { answerSendersToClosedAccounts } from '../answer-closed-accounts.js'
import type {
  IgnoredMessage,
  InboundMessage,
  RejectedMessage,
  SortedBatch,
  StoredRecord,
  WaitingMessage,
} from '../batch.js'
import { applyFilterEffectsToBatch, type FilteredMessages } from '../filter-messages.js'
import { answerAuthorsOfLateMessages, forwardToMovedAuthors } from '../moved/forward-to-moved.js'
import { recordReplays } from '../quarantine.js'
import { type StoredEntities, storeEntities } from '../store/store-entities.js'
import { insertTombstones } from '../store/store-retractions.js'
import { type ClaimedBatch, claimBatch } from './claim-batch.js'
import { enqueueLookupsAndFetches } from './enqueue-lookups-and-fetches.js'
import { notifyLocalUsers } from './notify-local-users.js'
import { requestChecksOfOfflinePods } from './request-pod-checks.js'
import { retractRelayablesOfBlocked } from './retract-relayables-of-blocked.js'
import { storeWaitingMessagesOfBatch } from './store-waiting-messages-of-batch.js'

/** The result of the transaction: the inserted rows, and the messages that only the tables could reject. */
interface CommittedBatch {
  readonly records: readonly StoredRecord[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
  /** Messages for accounts that have moved away, over the number that is forwarded for a pod in a day. */
  readonly unforwarded: number
}

/**
 * One transaction for a batch: claims its messages, stores the authorised entities, and writes what follows from them. A
 * resumed message without its row has been received by another worker and is skipped.
 */
export async function commitBatch(
  services: Services,
  batch: SortedBatch,
  filtered: FilteredMessages = new Map(),
  span?: ActiveSpan,
): Promise<CommittedBatch> {
  if (needsNoTransaction(batch)) return { records: [], rejected: [], ignored: [], unforwarded: 0 }
  const now = services.now()
  return inRequestTransaction(services, async (transaction) => {
    const claimed = await claimBatch(transaction, batch)
    const stored = await storeClaimed(services, transaction, claimed, now)
    const { unforwarded } = await writeFollowUps(services, transaction, { claimed, stored, filtered }, span)
    const { newlyBlocked } = claimed
    return {
      records: stored.records,
      rejected: [...stored.rejected, ...newlyBlocked.rejected],
      ignored: [...stored.ignored, ...newlyBlocked.ignored],
      unforwarded,
    }
  })
}

/** Rejected messages with a known sender may get an answer, so they need the transaction. */
function needsNoTransaction({ ready, waiting, rejected, ignored }: SortedBatch): boolean {
  const isResumed = ({ inbound }: { readonly inbound: InboundMessage }) => inbound.resumed !== undefined
  return (
    ready.length + waiting.length === 0 &&
    rejected.every(({ message }) => message === undefined) &&
    !rejected.some(isResumed) &&
    !ignored.some(isResumed)
  )
}

/**
 * Stores the entities. Tombstones come first, because the statements that insert entities read them; then the first signatures, because
 * they decide which of two people keeps a guid.
 */
async function storeClaimed(
  services: Services,
  transaction: Knex.Transaction,
  { ready, waitingToStore }: ClaimedBatch,
  now: Date,
): Promise<StoredEntities> {
  await insertTombstones(transaction, waitingToStore.flatMap(retractionIn))
  const firstSigned = new Set(ready.flatMap((message) => message.firstSigned ?? []))
  await recordFirstSignatures(transaction, [...firstSigned])
  return storeEntities(services, transaction, ready, now)
}

/** A retraction that is stored as waiting leaves a tombstone immediately, so that its target is rejected on arrival. */
function retractionIn({ message }: WaitingMessage) {
  return message?.entity.type === 'retraction' ? [{ ...message, entity: message.entity }] : []
}

interface StoredBatch {
  readonly claimed: ClaimedBatch
  readonly stored: StoredEntities
  readonly filtered: FilteredMessages
}

/**
 * Writes what follows from the stored entities, and from the messages that were not stored. The order:
 *
 * 1. answers to people who write to closed or moved accounts, and messages forwarded for moved authors, after the entities: the batch may
 *    have closed or moved an account,
 * 2. waiting messages are stored,
 * 3. lookups and fetches,
 * 4. counters are raised, messages resumed and jobs enqueued, with one statement; late, because its row locks hold up every other batch
 *    that counts on the same posts,
 * 5. notifications and activity after the counters: counting locks the post of a comment, which decides whose activity it moves; then the
 *    live events of the notifications,
 * 6. retractions to blocked authors, whom only the statements of the store know,
 * 7. checks of pods, effects of filters and results of replays, which lock rows that many batches share. Hiding takes counts and
 *    notifications back, so both are written before.
 */
async function writeFollowUps(
  services: Services,
  transaction: Knex.Transaction,
  { claimed, stored, filtered }: StoredBatch,
  span: ActiveSpan | undefined,
): Promise<Pick<CommittedBatch, 'unforwarded'>> {
  const { ready, waiting, waitingToStore } = claimed
  const { records } = stored
  const rejected = [...claimed.rejected, ...stored.rejected]
  await answerSendersToClosedAccounts(services, transaction, claimed.rejected)
  const { late, unforwarded } = await forwardToMovedAuthors(services, transaction, claimed.rejected)
  await answerAuthorsOfLateMessages(services, transaction, late)
  const resumable = await storeWaitingMessagesOfBatch(services, transaction, waitingToStore, records)
  const jobs = [
    ...stored.relayJobs,
    ...newLiveEventAndMailJobs(services, { shown: stored.newlyVisible }),
    ...(await enqueueLookupsAndFetches(services, transaction, records)),
  ]
  await raiseCountsAndResumeMessages(services, transaction, {
    entityKeys: resumable,
    counts: stored.pendingCounts,
    jobs,
  })
  const notifications = await inChildSpan(span, 'notify', () => notifyLocalUsers(services, transaction, stored))
  await enqueueLiveEventsAndMails(services, transaction, { notifications })
  await retractRelayablesOfBlocked(services, transaction, rejected)
  await requestChecksOfOfflinePods(transaction, ready)
  await applyFilterEffectsToBatch(services, transaction, filtered, records)
  await recordReplays(transaction, {
    messages: [...ready, ...waiting, ...claimed.rejected, ...claimed.ignored].map(({ inbound }) => inbound),
    records,
    waiting,
    rejected,
    ignored: [...claimed.ignored, ...stored.ignored],
  })
  return { unforwarded }
}
