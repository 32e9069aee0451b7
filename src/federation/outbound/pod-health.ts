import { DELIVERY_LIMITS, type DeliveryLimits } from '../../limits.js'
import type { PodStatus } from '../../persistence/models/pod.js'
import type { DueDelivery, FailedDelivery, PodHealthChange } from '../../persistence/outbound/due-deliveries.js'
import type { DeliveryAnswer } from '../../pod/pod.js'
import { faultOf, type RemoteFault, RemotePodError } from '../remote-pod/remote-pod-error.js'

/** What an exchange can end with that tells something about the other side. */
type ExchangeFault = Exclude<RemoteFault, 'busy'>

/** Answers to a private delivery: the pod does not have this person, and no later try will find them. */
const recipientIsGone: ReadonlySet<number> = new Set([404, 410])

/** The status of a pod that is down is another one; with this it may have stumbled over the delivery. */
const CRASHED = 500

/** What became of one delivery. */
export type Outcome =
  | { readonly kind: 'arrived' }
  /** It is this delivery that is not taken: tried again, and the others go on. */
  | { readonly kind: 'refused'; readonly fault: ExchangeFault; readonly status: number; readonly reason: string }
  /** It is the pod: everything for it waits. */
  | {
      readonly kind: 'away'
      readonly fault: ExchangeFault
      readonly status: number | undefined
      readonly reason: string
      readonly retryAfter: number | undefined
    }
  /** We must not send it there: no try will ever help. */
  | { readonly kind: 'forbidden'; readonly fault: 'not_allowed'; readonly reason: string }
  /** There is no envelope to send; whatever the reason, the pod has no part in it. */
  | { readonly kind: 'unsealed'; readonly fault: 'internal' | 'no_key' }
  /** We did not get to it, or were stopped before the answer. */
  | { readonly kind: 'untried'; readonly hasBegun: boolean }
  /** We had no time to wait for the answer. */
  | { readonly kind: 'silent' }

/** What the answer to a delivery means. A pod whose public door is gone is none any more; a person may be gone alone. */
export function outcomeOfAnswer({ status, retryAfter }: DeliveryAnswer, isPublic: boolean): Outcome {
  const fault = faultOf(status)
  if (fault === undefined) return { kind: 'arrived' }
  const reason = `A delivery was answered with status ${status}.`
  const isOfPod = fault === 'overloaded' || (fault === 'gone' && isPublic)
  return isOfPod ? { kind: 'away', fault, status, reason, retryAfter } : { kind: 'refused', fault, status, reason }
}

/** What an exchange means that ended without an answer; a mistake of our own is thrown again. */
export function outcomeOfError(error: unknown): Outcome {
  if (!(error instanceof RemotePodError)) throw error
  const { fault, message: reason } = error
  if (fault === 'busy') return { kind: 'untried', hasBegun: false }
  if (fault === 'not_allowed') return { kind: 'forbidden', fault, reason }
  return { kind: 'away', fault, status: undefined, reason, retryAfter: undefined }
}

/** The wait after failure number n: from about five minutes to about six hours, with jitter. */
export function retrySeconds(failures: number, random = Math.random): number {
  return (failures + 3) ** 4 + Math.floor(random() * 30) * (failures + 1)
}

/** What becomes of a delivery that did not arrive; undefined: it arrived, or nobody has tried. */
export function failureOf(
  outcome: Outcome,
  { record, attempts }: Pick<DueDelivery, 'record' | 'attempts'>,
  { tries, triesOfContact }: Pick<DeliveryLimits, 'tries' | 'triesOfContact'>,
): Omit<FailedDelivery, 'id' | 'encryptedEnvelope'> | undefined {
  if (outcome.kind === 'arrived' || (outcome.kind === 'untried' && !outcome.hasBegun)) return undefined
  if (outcome.kind === 'untried' || outcome.kind === 'silent') {
    // It may have arrived: noted, because a retraction must follow it.
    return { status: undefined, fault: 'timeout', counts: false, seconds: undefined, dead: false }
  }
  const failures = attempts + 1
  if (outcome.kind === 'away') {
    // A pod that is away keeps the time for all that is due. A delivery that may itself be the cause is put aside in the end.
    const isSuspect = outcome.status === CRASHED
    const seconds = isSuspect && failures >= tries ? retrySeconds(DELIVERY_LIMITS.podFailures) : undefined
    return { status: outcome.status, fault: outcome.fault, counts: isSuspect, seconds, dead: false }
  }
  const isFinal =
    outcome.kind === 'forbidden' ||
    (outcome.kind === 'unsealed' && outcome.fault === 'no_key') ||
    // A public delivery that is answered so concerns the pod, and is no refusal.
    (outcome.kind === 'refused' && recipientIsGone.has(outcome.status))
  const dead = isFinal || failures >= (record === 'contact' ? triesOfContact : tries)
  return {
    status: 'status' in outcome ? outcome.status : undefined,
    fault: outcome.fault,
    counts: true,
    seconds: dead ? undefined : retrySeconds(failures),
    dead,
  }
}

/** What one round of deliveries says about their pod, all in all: that something arrived weighs more than that something was refused. */
export function noteOf(outcomes: readonly Outcome[], failures: number, random = Math.random): PodHealthChange {
  const away = outcomes.find((outcome) => outcome.kind === 'away')
  if (away !== undefined) {
    const n = Math.min(failures + 1, DELIVERY_LIMITS.podFailures)
    const seconds = Math.max(retrySeconds(n, random), away.retryAfter ?? 0)
    return { kind: 'away', status: podStatusOf(away.fault), error: away.reason, seconds }
  }
  if (outcomes.some(({ kind }) => kind === 'arrived')) return { kind: 'well' }
  if (outcomes.some(({ kind }) => kind === 'silent')) return { kind: 'silent' }
  const refused = outcomes.findLast((outcome) => outcome.kind === 'refused' || outcome.kind === 'forbidden')
  if (refused === undefined) return { kind: 'unknown' }
  const { fault, reason } = refused
  const moved = outcomes.filter((outcome) => outcome.kind === 'refused' && outcome.fault === 'moved').length
  return { kind: 'refuses', status: podStatusOf(fault), error: reason, moved: fault === 'moved' ? moved : 0 }
}

const statuses: Readonly<Record<ExchangeFault, Exclude<PodStatus, 'unchecked'>>> = {
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

/** How a pod is of which an exchange ended so. */
export function podStatusOf(fault: ExchangeFault): Exclude<PodStatus, 'unchecked'> {
  return statuses[fault]
}
