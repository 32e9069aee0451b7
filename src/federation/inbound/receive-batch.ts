import type { Knex } from 'knex'
import { inChildSpan, inSpan } from '../../jobs/operations/in-span.js'
import { mayWaitAgain, raiseCountsAndResume } from '../../jobs/waiting/resume-messages.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { NO_COUNTS } from '../../persistence/inbound/raise-counts.js'
import { recordFirstSignatures } from '../../persistence/people/person-guids.js'
import type { ActiveSpan, Pod, SpanAttributes } from '../../pod/pod.js'
import type { ReceivableEntity } from '../../protocol/entities/registry.js'
import { answerSendersToClosedAccounts } from './answer-closed-accounts.js'
import { authorise } from './authorise.js'
import type { Arrival, IgnoredMessage, InboundMessage, RejectedMessage, StepResult, StoredRecord } from './batch.js'
import { logBatch, logRejectedAndIgnored } from './batch-log.js'
import { countSenders } from './count-senders.js'
import { countDailyBytes, ignoreOverDailyBytes } from './daily-bytes.js'
import { type FilteredArrivals, filterArrivals, recordFilteredArrivals } from './filter-arrivals.js'
import { followUp } from './follow-up.js'
import { forwardToMovedAuthors } from './moved/forward-to-moved.js'
import { followMovedAuthors, followMovedRootAuthors } from './moved/moved-authors.js'
import { ignoreNewlyBlocked } from './newly-blocked.js'
import { openEnvelopes } from './open-envelopes.js'
import { quarantineRejected, recordReplays } from './quarantine.js'
import { type BatchEnds, countBatch, queueLabel, timeStep } from './receive-metrics.js'
import { recordNotificationsAndActivity } from './record-notifications.js'
import { resolveReferences } from './resolve-references.js'
import { retractIgnoredRelayables } from './retract-ignored-relayables.js'
import { claimResumedMessages, parkWaitingMessages, requestChecksOfOfflinePods } from './settle-messages.js'
import { lockEntities } from './store/lock-entities.js'
import { storeEntities } from './store/store-entities.js'
import { leaveTombstones } from './store/store-retractions.js'

/** The messages of a batch that were not stored. */
export interface BatchOutcome extends Omit<StepResult<never>, 'ready'> {
  /** Messages that have waited too often or too long. The caller fails their jobs; their outbox rows are still there. */
  readonly givenUp: StepResult<never>['waiting']
}

/**
 * Receives one message or many, with the same steps. Either every message reaches its end, or this throws and no message did.
 * Waiting messages are parked; a waiting message that this pod has fetched is only returned to the caller.
 */
export async function receiveBatch(pod: Pod, messages: readonly InboundMessage[]): Promise<BatchOutcome> {
  const traces = messages.map(({ trace }) => trace)
  return inSpan(pod.tracer, 'inbound batch', { kind: 'consumer', traces, isBatch: true }, (span) =>
    receiveInSteps(pod, messages, span),
  )
}

async function receiveInSteps(
  pod: Pod,
  messages: readonly InboundMessage[],
  span: ActiveSpan | undefined,
): Promise<BatchOutcome> {
  const began = performance.now()
  const opened = await timeStep('open', span, () => openEnvelopes(pod, messages))
  const withinLimit = ignoreOverDailyBytes(pod, opened.ready)
  const known = await followMovedAuthors(pod, withinLimit.ready)
  const resolved = await timeStep('resolve', span, () => resolveReferences(pod, known))
  const authorised = authorise(await followMovedRootAuthors(pod, resolved.ready))
  const filtered = await filterArrivals(pod, authorised.ready)

  const steps = [opened, withinLimit, resolved, authorised, filtered]
  const unresolved = steps.flatMap((step) => step.waiting)
  const waiting = unresolved.filter(({ message: { resumed } }) => resumed === undefined || mayWaitAgain(resumed))
  const givenUp = unresolved.filter((waitingMessage) => !waiting.includes(waitingMessage))
  const sorted = {
    ready: filtered.ready,
    waiting,
    rejected: steps.flatMap((step) => step.rejected),
    ignored: steps.flatMap((step) => step.ignored),
  }
  // Logged before the commit: a worker that dies in between logs these messages twice rather than never.
  logRejectedAndIgnored(pod.log, sorted)
  const committed = await timeStep('store', span, () => commitBatch(pod, sorted, filtered.filtered, span))
  logRejectedAndIgnored(pod.log, committed)
  await countDailyBytes(
    pod,
    committed.records.map(({ arrival }) => arrival),
  )

  const rejected = [...sorted.rejected, ...committed.rejected]
  await quarantineRejected(pod, rejected)
  const ignored = [...sorted.ignored, ...committed.ignored]
  const ends = { stored: committed.records.length, waiting, rejected, ignored, givenUp }
  countBatch(messages, ends)
  countSenders(pod, opened, rejected)
  span?.set(describeBatch(messages, ends))
  logBatch(pod.log, messages, ends, performance.now() - began)
  return { waiting, rejected, ignored, givenUp }
}

function describeBatch(
  messages: readonly InboundMessage[],
  { stored, waiting, rejected, ignored }: BatchEnds,
): SpanAttributes {
  const [first] = messages
  const [fault] = rejected
  return {
    ...(first && { queue: queueLabel(first) }),
    ...(fault && { fault: fault.fault }),
    ...{
      messages: messages.length,
      stored,
      waiting: waiting.length,
      rejected: rejected.length,
      ignored: ignored.length,
    },
  }
}

type SortedBatch = StepResult<Arrival<ReceivableEntity>>

/** The result of the transaction: what it has inserted, and the messages that only the tables could reject. */
interface CommittedBatch {
  readonly records: readonly StoredRecord[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
}

/**
 * One transaction for a batch: stores the authorised entities with their follow-up work, parks the waiting messages, and deletes
 * the rows of resumed ones. A resumed message without its row has been received by another worker and is skipped.
 */
export async function commitBatch(
  pod: Pod,
  batch: SortedBatch,
  filtered: FilteredArrivals = new Map(),
  span?: ActiveSpan,
): Promise<CommittedBatch> {
  if (needsNoTransaction(batch)) return { records: [], rejected: [], ignored: [] }
  const now = pod.now()
  return inTransaction(pod, async (transaction) => {
    const { ready: claimed, waiting, ...before } = await claimResumedMessages(transaction, batch)
    const parked = waiting.filter(({ message }) => message.wanted === undefined)
    const { hasNewBlocks } = await lockEntities(transaction, claimed, parked)
    const { ready, ignored, ...newly } = hasNewBlocks
      ? await ignoreNewlyBlocked(transaction, claimed)
      : { ready: claimed, ignored: [], rejected: [] }
    const rejected = [...before.rejected, ...newly.rejected]
    await leaveTombstones(transaction, parked.flatMap(retractionIn))
    await proveSigners(transaction, ready)
    const stored = await storeEntities(pod, transaction, ready, now)
    await answerSendersToClosedAccounts(pod, transaction, rejected)
    await forwardToMovedAuthors(pod, transaction, rejected)
    const resumable = await parkWaitingMessages(pod, transaction, parked, stored.records)
    await raiseCountsAndResume(pod, transaction, stored.uncounted ?? NO_COUNTS, resumable)
    // After the counters: counting locks the post of a comment, which decides whose activity the comment moves.
    const notifications = await inChildSpan(span, 'notify', () =>
      recordNotificationsAndActivity(pod, transaction, stored.records),
    )
    await followUp(pod, transaction, stored.records, notifications)
    await retractIgnoredRelayables(pod, transaction, [...rejected, ...stored.rejected])
    await requestChecksOfOfflinePods(transaction, ready)
    await recordFilteredArrivals(pod, transaction, filtered, stored.records)
    await recordReplays(transaction, {
      messages: [...claimed, ...waiting, ...rejected, ...batch.ignored].map(({ message }) => message),
      records: stored.records,
      waiting,
      rejected: [...rejected, ...stored.rejected],
      ignored: [...batch.ignored, ...ignored, ...stored.ignored],
    })
    return { ...stored, rejected: [...stored.rejected, ...newly.rejected], ignored: [...stored.ignored, ...ignored] }
  })
}

/** Rejected messages with a known sender may get an answer, so they need the transaction. */
function needsNoTransaction({ ready, waiting, rejected, ignored }: SortedBatch): boolean {
  const isResumed = ({ message }: { readonly message: InboundMessage }) => message.resumed !== undefined
  return (
    ready.length + waiting.length === 0 &&
    rejected.every(({ arrival }) => arrival === undefined) &&
    !rejected.some(isResumed) &&
    !ignored.some(isResumed)
  )
}

/** A retraction that waits for its target keeps that target away at once. */
function retractionIn({ arrival }: SortedBatch['waiting'][number]) {
  return arrival?.entity.type === 'retraction' ? [{ ...arrival, entity: arrival.entity }] : []
}

async function proveSigners(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<ReceivableEntity>[],
): Promise<void> {
  await recordFirstSignatures(transaction, [...new Set(arrivals.flatMap(({ firstSigned = [] }) => firstSigned))])
}
