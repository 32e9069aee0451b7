import { countDelivery } from '../../jobs/operations/pod-activity.js'
import type { DueDelivery } from '../../persistence/outbound/due-deliveries.js'
import type { LeasedPod } from '../../persistence/outbound/pod-leases.js'
import { formatAddressHost } from '../../protocol/address.js'
import { inSpan } from '../../services/in-span.js'
import type { Services } from '../../services/services.js'
import { podOrigin } from '../discovery/pod-origin.js'
import { type DeliveryQueue, recordDelivery, recordDeliveryLatency } from './delivery-metrics.js'
import type { DeliveryLimits } from './limits.js'
import { type DeliveryOutcome, deliveryOutcomeOfError, outcomeOfResponse } from './pod-health.js'
import type { PreparedDelivery } from './prepare-deliveries.js'
import { openSenderOrder } from './sender-order.js'
import { getSharedDelivery } from './shared-delivery.js'
import { requestOrYield } from './yield-to-other-pods.js'

/** A run of deliveries to a pod whose lease this process holds. */
export interface LeasedRun {
  readonly services: Services
  readonly remotePod: LeasedPod
  /** The id of the lease. */
  readonly leaseId: string
  readonly queue: DeliveryQueue
  readonly signal: AbortSignal
  readonly limits: DeliveryLimits
}

export interface DeliveryAttempt {
  readonly due: DueDelivery
  readonly outcome: DeliveryOutcome
  /** The body of a private delivery, kept for the next attempt: encryption gives other bytes each time. */
  readonly encryptedEnvelope: string | undefined
}

interface RoundOptions {
  /** The pod has answered in this run. */
  readonly hasResponded: boolean
  /** Time after which no delivery starts, except the first. */
  readonly lastStartAt: number
}

/**
 * Sends deliveries to one pod, a few at a time. They start in their order, and the messages of one person arrive one after the
 * other. After the first failure of the pod no further delivery starts.
 */
export async function sendDeliveries(
  leased: LeasedRun,
  prepared: readonly PreparedDelivery[],
  { hasResponded, lastStartAt }: RoundOptions,
): Promise<readonly DeliveryAttempt[]> {
  const attempts: DeliveryAttempt[] = []
  const takeTurn = openSenderOrder()
  // One iterator for all loops below: each takes the next delivery from it.
  const pending = prepared.map((delivery) => ({ delivery, turn: takeTurn(delivery.due) })).values()
  let hasPodFailed = false
  async function sendOneByOne(): Promise<void> {
    for (const { delivery, turn } of pending) {
      await turn.predecessors
      if (hasPodFailed || (attempts.length > 0 && performance.now() >= lastStartAt)) return turn.finish()
      try {
        const began = performance.now()
        const outcome = await sendInSpan(leased, delivery, hasResponded)
        const ms = performance.now() - began
        hasPodFailed ||= ['away', 'not_started', 'interrupted'].includes(outcome.kind)
        const encryptedEnvelope = 'body' in delivery && !delivery.due.isPublic ? delivery.body : undefined
        attempts.push({ due: delivery.due, outcome, encryptedEnvelope })
        recordDelivery(leased.queue, outcome, ms)
        countForPod(leased, outcome, ms)
        if (outcome.kind === 'delivered') recordDeliveryLatency(delivery.due)
      } finally {
        turn.finish()
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(leased.limits.maxConcurrent, prepared.length) }, sendOneByOne))
  return attempts
}

/** Outcomes that say nothing about the pod are not counted. */
function countForPod({ services, remotePod }: LeasedRun, { kind }: DeliveryOutcome, ms: number): void {
  if (kind === 'not_started' || kind === 'interrupted' || kind === 'not_signable') return
  countDelivery(services.db, formatAddressHost(remotePod), { isDelivered: kind === 'delivered', ms })
}

function sendInSpan(leased: LeasedRun, delivery: PreparedDelivery, hasResponded: boolean): Promise<DeliveryOutcome> {
  const { services, remotePod, queue } = leased
  const { trace, record: entity } = delivery.due
  const attributes = { host: remotePod.host, queue, entity }
  return inSpan(services.tracer, 'deliver', { kind: 'client', traces: [trace], attributes }, async (span) => {
    const outcome = await sendDelivery(leased, delivery, hasResponded)
    span?.set({ outcome: outcome.kind, ...('fault' in outcome && { fault: outcome.fault }) })
    return outcome
  })
}

async function sendDelivery(
  { services, remotePod, queue, signal, limits }: LeasedRun,
  delivery: PreparedDelivery,
  hasResponded: boolean,
): Promise<DeliveryOutcome> {
  if ('fault' in delivery) return { kind: 'not_signable', fault: delivery.fault }
  const origin = podOrigin(remotePod)
  if (origin === undefined) {
    return {
      kind: 'forbidden',
      fault: 'not_allowed',
      reason: `${remotePod.host}:${remotePod.port} is not a valid host and port.`,
    }
  }
  try {
    const { path, contentType, body } = delivery
    const post = (signal: AbortSignal) =>
      services.remotePods.post(`${origin}${path}`, contentType, body, { deadline: limits.exchangeMs, signal })
    const mayYield = queue === 'outbound' && !hasResponded
    const response = mayYield
      ? await requestOrYield(getSharedDelivery(services.db).unanswered, post, signal, limits)
      : await post(signal)
    return response === undefined ? { kind: 'silent' } : outcomeOfResponse(response, delivery.due.isPublic)
  } catch (error) {
    return signal.aborted ? { kind: 'interrupted' } : deliveryOutcomeOfError(error)
  }
}

/** True if the pod has answered the request, with any status. */
export function didPodRespond({ outcome }: DeliveryAttempt): boolean {
  return outcome.kind === 'delivered' || ('status' in outcome && outcome.status !== undefined)
}
