import { inSpan } from '../../jobs/operations/in-span.js'
import { countDelivery } from '../../jobs/operations/pod-activity.js'
import type { DueDelivery, LeasedPod } from '../../persistence/outbound/due-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { formatAddressHost } from '../../protocol/address.js'
import { podOrigin } from '../discovery/pod-origin.js'
import { type DeliveryQueue, recordDelivery, recordDeliveryLatency } from './delivery-metrics.js'
import type { DeliveryLimits } from './limits.js'
import { type DeliveryOutcome, deliveryOutcomeOfError, outcomeOfAnswer } from './pod-health.js'
import type { SealedDelivery } from './seal-deliveries.js'
import { openSenderOrder } from './sender-order.js'
import { requestOrYield } from './yield-to-other-pods.js'

/** A pod whose lease this process holds, with the settings of the run. */
export interface LeasedDelivery {
  readonly pod: Pod
  readonly other: LeasedPod
  /** The id of the lease. */
  readonly owner: string
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
  /** After this time no delivery starts, except the first. */
  readonly startsUntil: number
}

/**
 * Sends deliveries to one pod, a few at a time. They start in their order, and the messages of one person arrive one after the
 * other. After the first failure of the pod no further delivery starts.
 */
export async function sendDeliveries(
  leased: LeasedDelivery,
  sealed: readonly SealedDelivery[],
  { hasResponded, startsUntil }: RoundOptions,
): Promise<readonly DeliveryAttempt[]> {
  const attempts: DeliveryAttempt[] = []
  const takePlace = openSenderOrder()
  // One iterator for all loops below: each takes the next delivery from it.
  const pending = sealed.map((delivery) => ({ delivery, place: takePlace(delivery.due) })).values()
  let hasPodFailed = false
  async function sendOneByOne(): Promise<void> {
    for (const { delivery, place } of pending) {
      await place.predecessors
      if (hasPodFailed || (attempts.length > 0 && performance.now() >= startsUntil)) return place.finish()
      try {
        const began = performance.now()
        const outcome = await sendInSpan(leased, delivery, hasResponded)
        const ms = performance.now() - began
        hasPodFailed ||= outcome.kind === 'away' || outcome.kind === 'untried'
        const encryptedEnvelope = 'body' in delivery && !delivery.due.isPublic ? delivery.body : undefined
        attempts.push({ due: delivery.due, outcome, encryptedEnvelope })
        recordDelivery(leased.queue, outcome, ms)
        countForPod(leased, outcome, ms)
        if (outcome.kind === 'arrived') recordDeliveryLatency(delivery.due)
      } finally {
        place.finish()
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(leased.limits.atOnce, sealed.length) }, sendOneByOne))
  return attempts
}

/** Outcomes that say nothing about the pod are not counted. */
function countForPod({ pod, other }: LeasedDelivery, { kind }: DeliveryOutcome, ms: number): void {
  if (kind === 'untried' || kind === 'unsealed') return
  countDelivery(pod.db, formatAddressHost(other), { arrived: kind === 'arrived', ms })
}

function sendInSpan(leased: LeasedDelivery, delivery: SealedDelivery, hasResponded: boolean): Promise<DeliveryOutcome> {
  const { pod, other, queue } = leased
  const { trace, record: entity } = delivery.due
  const attributes = { host: other.host, queue, entity }
  return inSpan(pod.tracer, 'deliver', { kind: 'client', traces: [trace], attributes }, async (span) => {
    const outcome = await sendDelivery(leased, delivery, hasResponded)
    span?.set({ outcome: outcome.kind, ...('fault' in outcome && { fault: outcome.fault }) })
    return outcome
  })
}

async function sendDelivery(
  { pod, other, queue, signal, limits }: LeasedDelivery,
  delivery: SealedDelivery,
  hasResponded: boolean,
): Promise<DeliveryOutcome> {
  if ('fault' in delivery) return { kind: 'unsealed', fault: delivery.fault }
  const origin = podOrigin(other)
  if (origin === undefined) {
    return {
      kind: 'forbidden',
      fault: 'not_allowed',
      reason: `${other.host}:${other.port} is not a valid host and port.`,
    }
  }
  try {
    const { path, contentType, body } = delivery
    const post = (signal: AbortSignal) =>
      pod.remote.post(`${origin}${path}`, contentType, body, { deadline: limits.exchangeMs, signal })
    const mayYield = queue === 'outbound' && !hasResponded
    const answer = mayYield ? await requestOrYield(post, signal, limits) : await post(signal)
    return answer === undefined ? { kind: 'silent' } : outcomeOfAnswer(answer, delivery.due.isPublic)
  } catch (error) {
    return signal.aborted ? { kind: 'untried', hasBegun: true } : deliveryOutcomeOfError(error)
  }
}

/** True if the pod has answered the request, with any status. */
export function hasResponse({ outcome }: DeliveryAttempt): boolean {
  return outcome.kind === 'arrived' || ('status' in outcome && outcome.status !== undefined)
}
