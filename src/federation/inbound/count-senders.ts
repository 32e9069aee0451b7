import { countReceived } from '../../jobs/operations/pod-activity.js'
import type { Pod } from '../../pod/pod.js'
import { splitAddress } from '../../protocol/address.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { InboundMessage, RejectedMessage, StepResult } from './batch.js'

/**
 * Counts the messages of a batch for the pods of their senders, in memory. A rejected message counts for the pod that it claims to come
 * from. Messages that are received again (resumed, fetched, replayed) are not counted.
 */
export function countSenders(
  { db }: Pick<Pod, 'db'>,
  opened: StepResult<StepResult<never>['waiting'][number]['arrival'] & object>,
  rejected: readonly RejectedMessage[],
): void {
  const count = (message: InboundMessage, address: string | undefined, end: 'received' | 'refused') => {
    if (message.wanted !== undefined || message.resumed !== undefined || message.quarantineId !== undefined) return
    const host = address === undefined ? undefined : splitAddress(address)?.host
    if (host !== undefined) countReceived(db, host, end)
  }
  const refused = new Set(rejected.map(({ message }) => message))
  for (const { message, signer } of opened.ready) {
    if (!refused.has(message)) count(message, signer.address, 'received')
  }
  for (const { message, sender } of opened.waiting) count(message, sender, 'received')
  for (const { message, arrival, envelope } of rejected) {
    count(message, arrival?.signer.address ?? peekEnvelope(envelope ?? message.envelope).sender, 'refused')
  }
}
