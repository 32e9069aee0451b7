import type { PodCheckStatus } from '../../persistence/models/remote-pod.js'
import type { FailedDelivery, PodHealthChange } from '../../persistence/outbound/delivery-results.js'
import type { DueDelivery } from '../../persistence/outbound/due-deliveries.js'
import type { DeliveryResponse } from '../../services/remote-pod-client.js'
import { faultOfStatus, type RemoteFault, RemotePodError } from '../remote-pod/remote-pod-error.js'
import { DELIVERY_LIMITS, type DeliveryLimits } from './limits.js'

/** The faults that concern the other pod and not this one. */
type ExchangeFault = Exclude<RemoteFault, 'busy'>

/** Status codes of a private delivery that mean that the pod does not have the recipient; no retry can help. */
const RECIPIENT_GONE_STATUSES: ReadonlySet<number> = new Set([404, 410])

/** A proxy answers 502 to 504 for a pod that is down. With a 500 this delivery may have crashed the pod. */
const CRASH_STATUS = 500

/** The outcome of one delivery attempt. */
export type DeliveryOutcome =
  | { readonly kind: 'delivered' }
  /** The pod refuses this delivery. It is retried, and the other deliveries continue. */
  | { readonly kind: 'refused'; readonly fault: ExchangeFault; readonly status: number; readonly reason: string }
  /** The pod is unreachable or overloaded: all its deliveries wait. */
  | {
      readonly kind: 'away'
      readonly fault: ExchangeFault
      readonly status: number | undefined
      readonly reason: string
      readonly retryAfter: number | undefined
    }
  /** This pod must not send to that address; no retry can help. */
  | { readonly kind: 'forbidden'; readonly fault: 'not_allowed'; readonly reason: string }
  /** The envelope could not be signed or encrypted. This says nothing about the pod. */
  | { readonly kind: 'not_signable'; readonly fault: 'internal' | 'no_key' }
  /** This process did not start the request. */
  | { readonly kind: 'not_started' }
  /** This process was stopped before the answer. */
  | { readonly kind: 'interrupted' }
  /** The attempt was cancelled because too many other pods were silent at the same time. */
  | { readonly kind: 'silent' }

/** The outcome of an answer. A pod without a public inbox counts as away. A missing private inbox concerns only one recipient. */
export function outcomeOfResponse({ status, retryAfter }: DeliveryResponse, isPublic: boolean): DeliveryOutcome {
  const fault = faultOfStatus(status)
  if (fault === undefined) return { kind: 'delivered' }
  const reason = `A delivery was answered with status ${status}.`
  const isOfPod = fault === 'overloaded' || (fault === 'gone' && isPublic)
  return isOfPod ? { kind: 'away', fault, status, reason, retryAfter } : { kind: 'refused', fault, status, reason }
}

/** The outcome of a request without an answer. Errors of this program are thrown again. */
export function deliveryOutcomeOfError(error: unknown): DeliveryOutcome {
  if (!(error instanceof RemotePodError)) throw error
  const { fault, message: reason } = error
  if (fault === 'busy') return { kind: 'not_started' }
  if (fault === 'not_allowed') return { kind: 'forbidden', fault, reason }
  return { kind: 'away', fault, status: undefined, reason, retryAfter: undefined }
}

/**
 * The seconds to wait after a number of failures, with jitter: five minutes after the first, six hours after the ninth, 65 hours after
 * the nineteenth.
 */
export function retrySeconds(failures: number, random = Math.random): number {
  return (failures + 3) ** 4 + Math.floor(random() * 30) * (failures + 1)
}

/** The changes to a delivery after an attempt. Undefined: it was delivered, or no request was started. */
export function toFailedDelivery(
  outcome: DeliveryOutcome,
  { record, attempts }: Pick<DueDelivery, 'record' | 'attempts'>,
  { maxRefusals, maxRefusalsOfContact }: Pick<DeliveryLimits, 'maxRefusals' | 'maxRefusalsOfContact'>,
): Omit<FailedDelivery, 'id' | 'encryptedEnvelope'> | undefined {
  if (outcome.kind === 'delivered' || outcome.kind === 'not_started') return undefined
  if (outcome.kind === 'interrupted' || outcome.kind === 'silent') {
    // The delivery may have arrived. The attempt is recorded, because a later retraction must follow it.
    return { status: undefined, fault: 'timeout', countsAsAttempt: false, seconds: undefined, isFinal: false }
  }
  const failures = attempts + 1
  if (outcome.kind === 'away') {
    // The pod keeps the retry time for all its deliveries. A delivery that may itself crash the pod is delayed alone in the end.
    const mayCrashPod = outcome.status === CRASH_STATUS
    const seconds =
      mayCrashPod && failures >= maxRefusals ? retrySeconds(DELIVERY_LIMITS.failuresUntilMaxDelay) : undefined
    return { status: outcome.status, fault: outcome.fault, countsAsAttempt: mayCrashPod, seconds, isFinal: false }
  }
  const isPermanent =
    outcome.kind === 'forbidden' ||
    (outcome.kind === 'not_signable' && outcome.fault === 'no_key') ||
    // A public delivery with these statuses has the outcome `away`.
    (outcome.kind === 'refused' && RECIPIENT_GONE_STATUSES.has(outcome.status))
  const isFinal = isPermanent || failures >= (record === 'contact' ? maxRefusalsOfContact : maxRefusals)
  return {
    status: 'status' in outcome ? outcome.status : undefined,
    fault: outcome.fault,
    countsAsAttempt: true,
    seconds: isFinal ? undefined : retrySeconds(failures),
    isFinal,
  }
}

/** The state of a pod after one round. The first kind of outcome that occurs decides: away, delivered, silent, refused. */
export function assessPod(
  outcomes: readonly DeliveryOutcome[],
  failures: number,
  random = Math.random,
): PodHealthChange {
  const away = outcomes.find((outcome) => outcome.kind === 'away')
  if (away !== undefined) {
    const failuresInRow = Math.min(failures + 1, DELIVERY_LIMITS.failuresUntilMaxDelay)
    const seconds = Math.max(retrySeconds(failuresInRow, random), away.retryAfter ?? 0)
    return { kind: 'away', status: toCheckStatus(away.fault), error: away.reason, seconds }
  }
  if (outcomes.some(({ kind }) => kind === 'delivered')) return { kind: 'available' }
  if (outcomes.some(({ kind }) => kind === 'silent')) return { kind: 'silent' }
  const lastRefusal = outcomes.findLast((outcome) => outcome.kind === 'refused' || outcome.kind === 'forbidden')
  if (lastRefusal === undefined) return { kind: 'unchanged' }
  const { fault, reason } = lastRefusal
  const redirectCount = outcomes.filter((outcome) => outcome.kind === 'refused' && outcome.fault === 'moved').length
  return { kind: 'refuses', status: toCheckStatus(fault), error: reason, moved: fault === 'moved' ? redirectCount : 0 }
}

const STATUS_OF_FAULT: Readonly<Record<ExchangeFault, Exclude<PodCheckStatus, 'unchecked'>>> = {
  dns: 'dns_failed',
  net: 'net_failed',
  timeout: 'net_failed',
  ssl: 'ssl_failed',
  too_many_redirects: 'http_failed',
  moved: 'http_failed',
  gone: 'http_failed',
  refused: 'http_failed',
  overloaded: 'http_failed',
  not_allowed: 'unknown_error',
  bad_answer: 'unknown_error',
  answer_too_large: 'unknown_error',
}

/** The pod status that a fault leads to. */
export function toCheckStatus(fault: ExchangeFault): Exclude<PodCheckStatus, 'unchecked'> {
  return STATUS_OF_FAULT[fault]
}
