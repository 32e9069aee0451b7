import { Counter, type Registry } from 'prom-client'

/** Why a waiting message is dropped. */
export type WaitingDropReason =
  /** The message is too long for an unverified one. */
  | 'too_large'
  /** The network address that posted it has named too many unknown signers. */
  | 'source_budget'
  /** The host of the sender has too many messages or bytes. */
  | 'host_bound'
  /** All hosts together have too many messages or bytes. */
  | 'total_bound'
  /** The signer was not found in time; the message becomes a dead letter without payload. */
  | 'signer_not_found'
  /** There were too many dead letters, or too many bytes of them. */
  | 'dead_bound'

const droppedCounter = new Counter({
  name: 'pod_waiting_messages_dropped_total',
  help: 'Messages that were not kept until what they wait for arrived, by reason and by whether their signature was verified.',
  labelNames: ['reason', 'signed'],
  registers: [],
})

export function countDropped(reason: WaitingDropReason, isVerified: boolean, messages: number): void {
  if (messages > 0) droppedCounter.inc({ reason, signed: String(isVerified) }, messages)
}

export function registerWaitingMetrics(registry: Registry): void {
  registry.registerMetric(droppedCounter)
}
