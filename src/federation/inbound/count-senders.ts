import { countReceived } from '../../jobs/operations/pod-activity.js'
import { splitAddress } from '../../protocol/address.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { Services } from '../../services/services.js'
import type { InboundMessage, RejectedMessage, StepResult, VerifiedMessage } from './batch.js'

/**
 * Counts the messages of a batch for the pods of their senders, in memory. A rejected message counts for the pod that it claims to come
 * from. Messages that are received again (resumed, fetched, replayed) are not counted.
 */
export function countSenders(
  { db }: Pick<Services, 'db'>,
  opened: StepResult<VerifiedMessage>,
  rejected: readonly RejectedMessage[],
): void {
  const count = (inbound: InboundMessage, address: string | undefined, end: 'received' | 'refused') => {
    if (inbound.fetchRequest !== undefined || inbound.resumed !== undefined || inbound.quarantineId !== undefined)
      return
    const host = address === undefined ? undefined : splitAddress(address)?.host
    if (host !== undefined) countReceived(db, host, end)
  }
  const refusedMessages = new Set(rejected.map(({ inbound }) => inbound))
  for (const { inbound, signer } of opened.ready) {
    if (!refusedMessages.has(inbound)) count(inbound, signer.address, 'received')
  }
  for (const { inbound, sender } of opened.waiting) count(inbound, sender, 'received')
  for (const { inbound, message, envelope } of rejected) {
    count(inbound, message?.signer.address ?? peekEnvelope(envelope ?? inbound.envelope).sender, 'refused')
  }
}
