import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import {
  insertQuarantined,
  type NewQuarantinedMessage,
  saveReplayResults,
} from '../../persistence/inbound/quarantine.js'
import { splitAddress } from '../../protocol/address.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { Services } from '../../services/services.js'
import type { IgnoredMessage, InboundMessage, RejectedMessage, StoredRecord, WaitingMessage } from './batch.js'
import { QUARANTINE_LIMITS } from './limits.js'

/** The messages that this process has stored in the current second. */
interface Budget {
  second: number
  used: number
}

export type QuarantineLimits = { readonly [Name in keyof typeof QUARANTINE_LIMITS]: number }

/** The budget of each set of open services. */
const budgetOf = stateByOwner<Services['jobs'], Budget>()

/**
 * Stores a sample of rejected messages for the operator, with one statement for a batch: a bounded number a second, chosen at random.
 * A failure does not fail the batch, which has been committed.
 */
export async function quarantineRejected(
  services: Pick<Services, 'db' | 'jobs' | 'log' | 'now'>,
  rejected: readonly RejectedMessage[],
  limits: QuarantineLimits = QUARANTINE_LIMITS,
): Promise<void> {
  // A fetched message can be fetched again, and the row of a replayed one has its result.
  const candidates = rejected.filter(
    (each) => each.inbound.fetchRequest === undefined && !each.inbound.quarantineId && !isByBlockedSender(each),
  )
  if (candidates.length === 0) return
  const sampledMessages = sample(candidates, takeFromBudget(services, candidates.length, limits.insertsPerSecond))
  if (sampledMessages.length === 0) return
  await insertQuarantined(
    services.db,
    sampledMessages.map((rejectedMessage) => rowOf(rejectedMessage, limits.payloadBytes)),
    limits,
  ).catch((err) => services.log.debug({ err }, 'rejected messages not stored'))
}

/**
 * Messages of blocked senders are counted only: they would displace messages that an operator has to examine. A message of a blocked
 * author that another pod relays is stored, because the operator of that pod may inquire about it.
 */
function isByBlockedSender({ fault, message }: RejectedMessage): boolean {
  if (message === undefined) return false
  const { sender, signer, entity } = message
  // If the sender was blocked after the envelope was opened, only the fault shows it.
  return signer.isPodBlocked || signer.isPersonBlocked || (fault === 'Moderated' && sender === entity.author)
}

/** Returns how many of the requested messages may be stored in this second, and counts them. */
function takeFromBudget({ jobs, now }: Pick<Services, 'jobs' | 'now'>, requested: number, perSecond: number): number {
  const second = Math.floor(now().getTime() / 1_000)
  const budget = budgetOf(jobs, () => ({ second, used: 0 }))
  if (budget.second !== second) Object.assign(budget, { second, used: 0 })
  const grantedCount = Math.min(requested, perSecond - budget.used)
  budget.used += grantedCount
  return grantedCount
}

/** Chooses at random, so that a flood of one kind does not hide all later messages. */
function sample<Item>(items: readonly Item[], count: number): readonly Item[] {
  const sampledItems = items.slice(0, count)
  if (count === 0) return sampledItems
  for (let index = count; index < items.length; index += 1) {
    const position = Math.floor(Math.random() * (index + 1))
    const item = items[index]
    if (position < count && item !== undefined) sampledItems[position] = item
  }
  return sampledItems
}

function rowOf({ inbound, message, fault, reason }: RejectedMessage, payloadBytes: number): NewQuarantinedMessage {
  const { envelope, recipientGuid = null, acceptedAt, source = null, trace = null } = inbound
  const bytes = envelopeBytes(envelope)
  const isWhole = bytes <= payloadBytes
  const digest = createHash('sha256')
    .update(`${recipientGuid ?? ''} ${envelope}`)
    .digest('hex')
  const commonValues = {
    receivedAt: acceptedAt,
    recipientGuid,
    source,
    fault,
    payload: isWhole ? envelope : envelope.slice(0, QUARANTINE_LIMITS.beginningCharacters),
    bytes,
    isWhole,
    digest,
    trace,
  }
  // Sender and entity of a private message are in its encrypted part.
  if (recipientGuid !== null)
    return { ...commonValues, author: null, host: null, entity: null, guid: null, detail: null }
  const author = message?.entity.author ?? peekEnvelope(envelope).sender ?? null
  return {
    ...commonValues,
    author,
    host: (author !== null && splitAddress(author)?.host) || null,
    entity: message?.entity.type ?? null,
    guid: message !== undefined && 'guid' in message.entity ? message.entity.guid : null,
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

/** Stores the results of messages that were replayed from the quarantine. A message without another result is a repeat. */
export async function recordReplays(
  transaction: Knex.Transaction,
  { messages, records, waiting, rejected, ignored }: ReplayedBatch,
): Promise<void> {
  const replayedMessages = messages.filter(({ quarantineId }) => quarantineId !== undefined)
  if (replayedMessages.length === 0) return
  const storedMessages = new Set(records.map(({ message }) => message.inbound))
  const waits = new Set(waiting.map(({ inbound }) => inbound))
  const faults = new Map(rejected.map(({ inbound, fault }) => [inbound, fault]))
  const withoutEffect = new Set(ignored.map(({ inbound }) => inbound))
  const resultOf = (inbound: InboundMessage) =>
    faults.get(inbound) ??
    (waits.has(inbound)
      ? 'waiting'
      : withoutEffect.has(inbound)
        ? 'ignored'
        : storedMessages.has(inbound)
          ? 'stored'
          : 'repeated')
  await saveReplayResults(
    transaction,
    replayedMessages.flatMap((inbound) =>
      inbound.quarantineId === undefined ? [] : { id: inbound.quarantineId, result: resultOf(inbound) },
    ),
  )
}
