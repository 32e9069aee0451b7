import type { Knex } from 'knex'
import { deleteOutboxRows } from '../../../jobs/outbox/load-job.js'
import type {
  IgnoredMessage,
  InboundMessage,
  RejectedMessage,
  ResolvedMessage,
  SortedBatch,
  WaitingMessage,
} from '../batch.js'
import { lockEntities } from '../store/lock-entities.js'
import { separateNewlyBlocked } from './newly-blocked.js'

/** The messages that a transaction handles, under the locks of their entities. */
export interface ClaimedBatch {
  readonly ready: readonly ResolvedMessage[]
  readonly waiting: readonly WaitingMessage[]
  /** The waiting messages that are stored. A fetched message is only returned to the caller of `receiveBatch`. */
  readonly waitingToStore: readonly WaitingMessage[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
  /** The part of `rejected` and `ignored` whose people or pods were blocked since the envelopes were opened. */
  readonly newlyBlocked: Pick<ClaimedBatch, 'rejected' | 'ignored'>
}

/**
 * Claims the rows of resumed messages first: a worker that has lost them takes no locks. Then it locks the entities, with the statement
 * that also looks for new blocks, and leaves out the messages of people or pods that were blocked since the envelopes were opened.
 */
export async function claimBatch(transaction: Knex.Transaction, batch: SortedBatch): Promise<ClaimedBatch> {
  const { ready: claimed, waiting, rejected } = await claimResumedMessages(transaction, batch)
  const waitingToStore = waiting.filter(({ inbound }) => inbound.fetchRequest === undefined)
  const { hasNewBlocks } = await lockEntities(transaction, claimed, waitingToStore)
  const { ready, ...newlyBlocked } = hasNewBlocks
    ? await separateNewlyBlocked(transaction, claimed)
    : { ready: claimed, ignored: [], rejected: [] }
  return {
    ready,
    waiting,
    waitingToStore,
    rejected: [...rejected, ...newlyBlocked.rejected],
    ignored: [...batch.ignored, ...newlyBlocked.ignored],
    newlyBlocked,
  }
}

/** Deletes the outbox rows of resumed messages. Returns the batch without the messages whose row another worker has deleted. */
async function claimResumedMessages(
  transaction: Knex.Transaction,
  { ready, waiting, rejected, ignored }: SortedBatch,
): Promise<Omit<SortedBatch, 'ignored'>> {
  const messages: readonly { readonly inbound: InboundMessage }[] = [...ready, ...waiting, ...rejected, ...ignored]
  const rows = messages.flatMap(({ inbound }) => inbound.resumed?.outboxId ?? [])
  const claimedRows = await deleteOutboxRows(transaction, rows)
  const isClaimed = ({ inbound: { resumed } }: { readonly inbound: InboundMessage }) =>
    resumed === undefined || claimedRows.has(resumed.outboxId)
  return {
    ready: ready.filter(isClaimed),
    waiting: waiting.filter(isClaimed),
    rejected: rejected.filter(isClaimed),
  }
}
