import type { Knex } from 'knex'
import { deleteOutboxRows } from '../../jobs/outbox/outbox.js'
import type { EntityKey } from '../../jobs/waiting/entity-key.js'
import { type ParkedMessage, parkMessages } from '../../jobs/waiting/park-messages.js'
import { Pod as OtherPod } from '../../persistence/models/pod.js'
import type { Pod } from '../../pod/pod.js'
import { splitAddress } from '../../protocol/address.js'
import type { ReceivableEntity } from '../../protocol/entities/registry.js'
import type { Arrival, InboundMessage, StepResult, StoredRecord, WaitingMessage } from './batch.js'
import { providedKeys } from './store/lock-entities.js'

type SortedBatch = StepResult<Arrival<ReceivableEntity>>

/** Deletes the outbox rows of resumed messages. Returns the batch without the messages whose row another worker has deleted. */
export async function claimResumedMessages(
  transaction: Knex.Transaction,
  { ready, waiting, rejected, ignored }: SortedBatch,
): Promise<Omit<SortedBatch, 'ignored'>> {
  const all: readonly { readonly message: InboundMessage }[] = [...ready, ...waiting, ...rejected, ...ignored]
  const rows = all.flatMap(({ message }) => message.resumed?.outboxId ?? [])
  const claimed = await deleteOutboxRows(transaction, rows)
  const isClaimed = ({ message: { resumed } }: { readonly message: InboundMessage }) =>
    resumed === undefined || claimed.has(resumed.outboxId)
  return {
    ready: ready.filter(isClaimed),
    waiting: waiting.filter(isClaimed),
    rejected: rejected.filter(isClaimed),
  }
}

/** Parks the waiting messages. Returns the entities that are stored by now; `raiseCountsAndResume` resumes their messages. */
export function parkWaitingMessages(
  pod: Pod,
  transaction: Knex.Transaction,
  waiting: readonly WaitingMessage[],
  records: readonly StoredRecord[],
): Promise<readonly EntityKey[]> {
  const entityKeys = records.flatMap(({ arrival }) => providedKeys(arrival))
  return parkMessages(pod, transaction, waiting.map(parkedMessageOf), entityKeys)
}

function parkedMessageOf({ message, ...wait }: WaitingMessage): ParkedMessage {
  const { envelope, recipientGuid, acceptedAt, source, trace, resumed, quarantineId, isReleased } = message
  const senderHost = splitAddress(wait.sender)?.host
  return {
    ...wait,
    senderHost,
    source,
    trace,
    payload: envelope,
    recipientGuid,
    acceptedAt,
    times: resumed?.times ?? 0,
    quarantineId,
    isReleased,
  }
}

/** A pod counted as offline that sends messages is checked soon instead of once a day. */
export async function requestChecksOfOfflinePods(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival[],
): Promise<void> {
  if (!arrivals.some(({ signer }) => signer.offline)) return
  const senders = new Set(arrivals.map(({ signer }) => signer.address))
  await OtherPod.requestChecks(transaction, [...senders])
}
