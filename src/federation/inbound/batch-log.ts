import type { Logger } from 'pino'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { IgnoredMessage, InboundMessage, RejectedMessage } from './batch.js'
import { type BatchEnds, countEnds, queueLabel } from './receive-metrics.js'

/** One line for each message that was rejected or ignored. */
export function logRejectedAndIgnored(
  log: Logger,
  { rejected, ignored }: { readonly rejected: readonly RejectedMessage[]; readonly ignored: readonly IgnoredMessage[] },
): void {
  for (const one of rejected) {
    log.warn(
      { trace: one.message.trace, fault: one.fault, ...identityOf(one), reason: one.reason },
      'inbound message rejected',
    )
  }
  for (const one of ignored)
    log.debug({ trace: one.message.trace, ...identityOf(one), reason: one.reason }, 'inbound message ignored')
}

/** Sender, recipient, type and guid, never the contents. The sender of an unopened envelope is only a claim. */
function identityOf({ message, envelope, arrival }: RejectedMessage | IgnoredMessage): object {
  const { recipientGuid } = message
  if (arrival === undefined) {
    const readable = envelope ?? (recipientGuid === undefined ? message.envelope : undefined)
    return { sender: readable && peekEnvelope(readable).sender, recipientGuid }
  }
  const { sender, entity } = arrival
  return { sender, recipientGuid, entity: entity.type, guid: 'guid' in entity ? entity.guid : undefined }
}

const TRACES_OF_LINE = 20

/** One line for a batch: the number of messages by their ends, and the duration. */
export function logBatch(log: Logger, messages: readonly InboundMessage[], ends: BatchEnds, ms: number): void {
  const [first] = messages
  if (first === undefined) return
  const counts = Object.entries(countEnds(messages, ends)).filter(([, count]) => count > 0)
  const traces = messages.slice(0, TRACES_OF_LINE).flatMap(({ trace }) => trace ?? [])
  log.info(
    { queue: queueLabel(first), messages: messages.length, ...Object.fromEntries(counts), ms: Math.round(ms), traces },
    'inbound batch processed',
  )
}
