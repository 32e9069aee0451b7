import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { type DuePod, enqueueDeliveries } from '../../jobs/outbox/enqueue-deliveries.js'
import type { ArrivedParticipations } from '../../persistence/interactions/outgoing-participations.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import { type DueDelivery, type PodHealthChange, releasePod } from '../../persistence/outbound/due-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { formatAddressHost } from '../../protocol/address.js'
import type { DeliveryQueue } from './delivery-metrics.js'
import { type DeliveryAttempt, hasResponse, type LeasedDelivery, sendDeliveries } from './delivery-round.js'
import { DELIVERY_LIMITS, type DeliveryLimits } from './limits.js'
import { assessPod, toFailedDelivery } from './pod-health.js'
import { sealDeliveries } from './seal-deliveries.js'
import { getSharedDelivery } from './shared-delivery.js'

export interface DeliverOptions {
  /** The slots of `outbound` are for pods that have proven to respond. */
  readonly queue: DeliveryQueue
  readonly signal: AbortSignal
  /** Follows the deliveries of a pod in which participations have arrived. */
  readonly onParticipations: (arrived: ArrivedParticipations) => Promise<void>
  readonly limits?: Partial<DeliveryLimits>
}

/**
 * `released`: nothing is due, and the lease has been given back. `yielded`: too many pods were silent. `interrupted`: this process could
 * not go on.
 */
type DrainResult = 'released' | 'yielded' | 'timed_out' | 'interrupted'

/**
 * Sends the due deliveries of pods. Each pod has its own loop, so that a slow one delays no other; pods that need a statement at the
 * same time share it. Pods without a slot until the time of this run is over are enqueued again.
 */
export async function deliver(pod: Pod, podIds: readonly number[], options: DeliverOptions): Promise<void> {
  const { queue, signal } = options
  setMaxListeners(0, signal) // each exchange adds one
  const limits = { ...DELIVERY_LIMITS, ...options.limits }
  const run = { ...options, limits, until: performance.now() + limits.drainMs }
  const { slots } = getSharedDelivery(pod.db)
  const left: DuePod[] = []
  async function deliverInSlot(podId: number): Promise<void> {
    const release = queue === 'outbound' ? await slots.acquire(signal, run) : await slots.untilUncontended(signal)
    try {
      if (performance.now() < run.until) await deliverToPod(pod, podId, run)
      else left.push({ podId, proven: queue === 'outbound' })
    } finally {
      release?.()
    }
  }
  const results = await Promise.allSettled(podIds.map(deliverInSlot))
  await enqueueDeliveries(pod, left)
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined && !signal.aborted) throw failed.reason
}

interface RunOptions extends DeliverOptions {
  readonly limits: DeliveryLimits
  /** The end of the time of this run. */
  readonly until: number
}

/**
 * Sends the due deliveries of one pod, by priority and then in the order of insertion, until none is due, the pod fails, or the time
 * of this run is over. The lease allows one run for a pod at a time in all processes; a second run ends at once.
 */
async function deliverToPod(pod: Pod, podId: number, run: RunOptions): Promise<void> {
  const { queue, signal, limits, until, onParticipations } = run
  const owner = randomUUID()
  const request = { podId, owner, milliseconds: limits.leaseMs, onlyProven: queue === 'outbound' }
  const lease = await getSharedDelivery(pod.db).lease(request)
  if (lease === undefined) return
  if (!lease.isLeased) return enqueueDeliveries(pod, [{ podId, proven: false }])
  const arrived: string[] = []
  let end: DrainResult = 'interrupted'
  try {
    end = await deliverInOrder({ pod, other: lease.pod, owner, queue, signal, limits }, until, arrived)
  } finally {
    // The results have ended the lease of a pod without further due deliveries, and of a silent one.
    if (end === 'timed_out' || end === 'interrupted') await releasePod(pod.db, podId, owner)
  }
  if (arrived.length > 0) {
    const isFirstOfPod = !lease.pod.takesParticipations
    await onParticipations({ podId, postGuids: arrived, isFirstOfPod })
  }
  // A run that broke off is not enqueued again: its obstacle still exists. The sweeper finds the deliveries later.
  if (end === 'timed_out') await enqueueDeliveries(pod, [{ podId, proven: queue === 'outbound' }])
  if (end === 'yielded') await enqueueDeliveries(pod, [{ podId, proven: false }])
}

/** Adds the posts whose participations have arrived. */
async function deliverInOrder(leased: LeasedDelivery, until: number, participatedIn: string[]): Promise<DrainResult> {
  const { pod, other, limits } = leased
  const { findDue, recordOwnRound, isOwnRoundRecent } = getSharedDelivery(pod.db)
  let { failures } = other
  let hasResponded = false
  while (performance.now() < until) {
    // The first round is a probe with one delivery: an unreachable pod costs one request.
    const began = performance.now()
    const rows = await findDue({ podId: other.id, limit: hasResponded ? limits.rowsAtOnce : 1 })
    const due = selectForRound(rows, isOwnRoundRecent() ? limits.relaysBesideOwn : limits.rowsAtOnce)
    const sealed = await sealDeliveries(
      pod,
      due.filter(({ held }) => !held),
    )
    if (hasOwn(due)) recordOwnRound()
    const startsUntil = hasOwn(due) ? until : performance.now() + limits.relayRoundMs
    const attempts = await sendDeliveries(leased, sealed, { hasResponded, startsUntil })
    const assessment = assessPod(
      attempts.map(({ outcome }) => outcome),
      failures,
    )
    const isMoreDue = await saveRound(leased, attempts, assessment)
    logRound(leased, attempts, performance.now() - began)
    logPodChange(leased, assessment, failures)
    if (assessment.kind === 'available') failures = 0
    hasResponded ||= attempts.some(hasResponse)
    participatedIn.push(...attempts.flatMap(postOfArrivedParticipation))
    if (assessment.kind === 'silent') return 'yielded'
    if (!isMoreDue) return 'released'
    if (attempts.some(({ outcome }) => outcome.kind === 'untried')) return 'interrupted'
    if (due.length > 0 && !hasOwn(due) && isOwnRoundRecent()) await pauseFor(performance.now() - began, leased)
  }
  return 'timed_out'
}

/** Messages of local users are sent before relays and participations, in rounds of their own. */
function selectForRound(due: readonly DueDelivery[], relays: number): readonly DueDelivery[] {
  return hasOwn(due) ? due.filter(({ priority }) => priority === DELIVERY_PRIORITY.own) : due.slice(0, relays)
}

function hasOwn(due: readonly DueDelivery[]): boolean {
  return due.some(({ priority }) => priority === DELIVERY_PRIORITY.own)
}

/**
 * Pauses after a round of relays and participations while local users write: as long as the round, at most `relayPauseMs`. Each relay
 * and participation has its own signature, and signing keeps the processors from all other work.
 */
async function pauseFor(roundMs: number, { signal, limits }: LeasedDelivery): Promise<void> {
  await pause(Math.min(roundMs, limits.relayPauseMs), undefined, { signal }).catch(() => undefined)
}

/** Writes the outcomes of a round. True: more is due, and this process still holds the lease. */
async function saveRound(
  { pod, other, owner, limits }: LeasedDelivery,
  attempts: readonly DeliveryAttempt[],
  assessment: PodHealthChange,
): Promise<boolean> {
  return getSharedDelivery(pod.db).record({
    podId: other.id,
    owner,
    milliseconds: limits.leaseMs,
    arrived: attempts.filter(({ outcome }) => outcome.kind === 'arrived').map(({ due }) => due.id),
    failed: attempts.flatMap(({ due, outcome, encryptedEnvelope }) => {
      const failure = toFailedDelivery(outcome, due, limits)
      return failure === undefined ? [] : [{ ...failure, id: due.id, encryptedEnvelope }]
    }),
    podHealth: assessment,
    hasAnswered: attempts.some(hasResponse),
    redirects: limits.redirects,
  })
}

/** One line for a round: the number of deliveries by outcome, and the duration. */
function logRound({ pod, other, queue }: LeasedDelivery, attempts: readonly DeliveryAttempt[], ms: number): void {
  if (attempts.length === 0) return
  const counts: Record<string, number> = {}
  for (const { outcome } of attempts) counts[outcome.kind] = (counts[outcome.kind] ?? 0) + 1
  pod.log.info(
    { pod: formatAddressHost(other), lane: queue, deliveries: attempts.length, ...counts, ms: Math.round(ms) },
    'delivery round',
  )
}

/** One line when a pod fails for the first time, and one when it responds again. */
function logPodChange({ pod, other }: LeasedDelivery, assessment: PodHealthChange, failures: number): void {
  if (assessment.kind === 'available' && failures > 0)
    pod.log.info({ pod: formatAddressHost(other) }, 'pod reachable again')
  if (assessment.kind === 'away' && failures === 0) {
    pod.log.info({ pod: formatAddressHost(other), reason: assessment.error }, 'the pod does not answer')
  }
}

/** The post of a participation that has arrived. */
function postOfArrivedParticipation({ due, outcome }: DeliveryAttempt): readonly string[] {
  const isParticipation = due.priority === DELIVERY_PRIORITY.participation && outcome.kind === 'arrived'
  return isParticipation && due.about !== null ? [due.about] : []
}
