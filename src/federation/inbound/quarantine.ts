import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import {
  insertQuarantined,
  type NewQuarantinedMessage,
  saveReplayResults,
} from '../../persistence/inbound/quarantine.js'
import type { Pod } from '../../pod/pod.js'
import { splitAddress } from '../../protocol/address.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import { stateByOwner } from '../../throttling/state-by-owner.js'
import type { IgnoredMessage, InboundMessage, RejectedMessage, StoredRecord, WaitingMessage } from './batch.js'
import { QUARANTINE_LIMITS } from './limits.js'

/** The messages that this process has stored in the current second. */
interface Budget {
  second: number
  used: number
}

/** One entry for each open pod of this process. */
const budgetOf = stateByOwner<Pod['jobs'], Budget>()

/**
 * Stores a sample of rejected messages for the operator, with one statement for a batch: a bounded number a second, chosen at random.
 * A failure is no failure of the batch, which has been committed.
 */
export async function quarantineRejected(
  pod: Pick<Pod, 'db' | 'jobs' | 'log' | 'now'>,
  rejected: readonly RejectedMessage[],
  limits: typeof QUARANTINE_LIMITS = QUARANTINE_LIMITS,
): Promise<void> {
  // A fetched message can be fetched again, and the row of a replayed one has its result.
  const candidates = rejected.filter(({ message }) => message.wanted === undefined && !message.quarantineId)
  if (candidates.length === 0) return
  const chosen = sample(candidates, spend(pod, candidates.length, limits.insertsPerSecond))
  if (chosen.length === 0) return
  await insertQuarantined(
    pod.db,
    chosen.map((rejectedMessage) => rowOf(rejectedMessage, limits.payloadBytes)),
    limits,
  ).catch((err) => pod.log.debug({ err }, 'rejected messages not stored'))
}

/** Returns how many of the wanted messages may be stored in this second. */
function spend({ jobs, now }: Pick<Pod, 'jobs' | 'now'>, wanted: number, perSecond: number): number {
  const second = Math.floor(now().getTime() / 1_000)
  const budget = budgetOf(jobs, () => ({ second, used: 0 }))
  if (budget.second !== second) Object.assign(budget, { second, used: 0 })
  const granted = Math.min(wanted, perSecond - budget.used)
  budget.used += granted
  return granted
}

/** Chooses at random, so that a flood of one kind does not hide everything behind its beginning. */
function sample<Item>(items: readonly Item[], count: number): readonly Item[] {
  const chosen = items.slice(0, count)
  if (count === 0) return chosen
  for (let index = count; index < items.length; index += 1) {
    const place = Math.floor(Math.random() * (index + 1))
    const item = items[index]
    if (place < count && item !== undefined) chosen[place] = item
  }
  return chosen
}

const BEGINNING_CHARACTERS = 4_096

function rowOf({ message, arrival, fault, reason }: RejectedMessage, payloadBytes: number): NewQuarantinedMessage {
  const { envelope, recipientGuid = null, acceptedAt, source = null, trace = null } = message
  const bytes = envelopeBytes(envelope)
  const isWhole = bytes <= payloadBytes
  const digest = createHash('sha256')
    .update(`${recipientGuid ?? ''} ${envelope}`)
    .digest('hex')
  const stored = {
    receivedAt: acceptedAt,
    recipientGuid,
    source,
    fault,
    payload: isWhole ? envelope : envelope.slice(0, BEGINNING_CHARACTERS),
    bytes,
    isWhole,
    digest,
    trace,
  }
  // Sender and entity of a private message stand in its encrypted part.
  if (recipientGuid !== null) return { ...stored, author: null, host: null, entity: null, guid: null, detail: null }
  const author = arrival?.entity.author ?? peekEnvelope(envelope).sender ?? null
  return {
    ...stored,
    author,
    host: (author !== null && splitAddress(author)?.host) || null,
    entity: arrival?.entity.type ?? null,
    guid: arrival !== undefined && 'guid' in arrival.entity ? arrival.entity.guid : null,
    detail: reason,
  }
}

interface ReplayedBatch {
  readonly messages: readonly InboundMessage[]
  readonly records: readonly StoredRecord[]
  readonly waiting: readonly WaitingMessage[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
}

/** Stores the results of messages that were replayed from the quarantine. Messages without any other end are repeated ones. */
export async function recordReplays(
  transaction: Knex.Transaction,
  { messages, records, waiting, rejected, ignored }: ReplayedBatch,
): Promise<void> {
  const replayed = messages.filter(({ quarantineId }) => quarantineId !== undefined)
  if (replayed.length === 0) return
  const stored = new Set(records.map(({ arrival }) => arrival.message))
  const waits = new Set(waiting.map(({ message }) => message))
  const faults = new Map(rejected.map(({ message, fault }) => [message, fault]))
  const withoutEffect = new Set(ignored.map(({ message }) => message))
  const resultOf = (message: InboundMessage) =>
    faults.get(message) ??
    (waits.has(message)
      ? 'waiting'
      : withoutEffect.has(message)
        ? 'ignored'
        : stored.has(message)
          ? 'stored'
          : 'repeated')
  await saveReplayResults(
    transaction,
    replayed.flatMap((message) =>
      message.quarantineId === undefined ? [] : { id: message.quarantineId, result: resultOf(message) },
    ),
  )
}
