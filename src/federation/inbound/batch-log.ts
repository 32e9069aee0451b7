import type { Logger } from 'pino'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { IgnoredMessage, InboundMessage, RejectedMessage } from './batch.js'
import { INBOUND_LIMITS } from './limits.js'
import { type BatchOutcomes, countOutcomes, queueLabel } from './receive-metrics.js'

/** One line for each message that was rejected or ignored. */
export function logRejectedAndIgnored(
  log: Logger,
  { rejected, ignored }: { readonly rejected: readonly RejectedMessage[]; readonly ignored: readonly IgnoredMessage[] },
): void {
  for (const message of rejected) {
    log.warn(
      { trace: message.inbound.trace, fault: message.fault, ...identityOf(message), reason: message.reason },
      'inbound message rejected',
    )
  }
  for (const message of ignored) {
    log.debug(
      { trace: message.inbound.trace, fault: message.fault, ...identityOf(message), reason: message.reason },
      'inbound message ignored',
    )
  }
}

/** Sender, recipient, type and guid, never the contents. The sender of an unopened envelope is only a claim. */
function identityOf({ inbound, envelope, message }: RejectedMessage | IgnoredMessage): object {
  const { recipientGuid } = inbound
  if (message === undefined) {
    const readable = envelope ?? (recipientGuid === undefined ? inbound.envelope : undefined)
    return { sender: readable && peekEnvelope(readable).sender, recipientGuid }
  }
  const { sender, entity } = message
  return { sender, recipientGuid, entity: entity.type, guid: 'guid' in entity ? entity.guid : undefined }
}

/** One line for a batch: the number of messages by their outcomes, and the duration. */
export function logBatch(log: Logger, messages: readonly InboundMessage[], outcomes: BatchOutcomes, ms: number): void {
  const [first] = messages
  if (first === undefined) return
  const counts = Object.entries(countOutcomes(messages, outcomes)).filter(([, count]) => count > 0)
  const traces = messages.slice(0, INBOUND_LIMITS.tracesOfLogLine).flatMap(({ trace }) => trace ?? [])
  log.info(
    { queue: queueLabel(first), messages: messages.length, ...Object.fromEntries(counts), ms: Math.round(ms), traces },
    'inbound batch processed',
  )
}
