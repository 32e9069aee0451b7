import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { startDeliveries } from '../../jobs/outbox/start-deliveries.js'
import { QueueUnavailable } from '../../jobs/queues/queue-unavailable.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import type { FailedDelivery, PodHealthChange } from '../../persistence/outbound/delivery-results.js'
import type { DueDelivery, DuePod } from '../../persistence/outbound/due-deliveries.js'
import { releasePod } from '../../persistence/outbound/pod-leases.js'
import { formatAddressHost } from '../../protocol/address.js'
import type { Services } from '../../services/services.js'
import type { DeliveryQueue } from './delivery-metrics.js'
import { type DeliveryAttempt, didPodRespond, type LeasedRun, sendDeliveries } from './delivery-round.js'
import { DELIVERY_LIMITS, type DeliveryLimits } from './limits.js'
import { participateInPostponedPosts } from './participate.js'
import { assessPod, toFailedDelivery } from './pod-health.js'
import { prepareDeliveries } from './prepare-deliveries.js'
import { getSharedDelivery } from './shared-delivery.js'

interface DeliverOptions {
  /** The slots of `outbound` are for proven pods. */
  readonly queue: DeliveryQueue
  readonly signal: AbortSignal
  readonly limits?: Partial<DeliveryLimits>
}

/**
 * `none_due`: `recordDeliveryResults` has released the lease. `yielded`: too many pods were silent. `stopped`: this process is ending, or
 * has no capacity.
 */
type DeliveryRunEnd = 'none_due' | 'yielded' | 'time_over' | 'stopped'

/**
 * Sends the due deliveries of pods. Each pod has its own loop, so that a slow one delays no other; pods that need a statement at the
 * same time share it. Pods that get no slot before this run ends are enqueued again. When a pod has accepted participations,
 * its postponed ones are sent next.
 */
export async function deliver(services: Services, podIds: readonly number[], options: DeliverOptions): Promise<void> {
  const { queue, signal } = options
  setMaxListeners(0, signal) // each exchange adds one
  const limits = { ...DELIVERY_LIMITS, ...options.limits }
  const run = { ...options, limits, endsAt: performance.now() + limits.runMs }
  const { slots } = getSharedDelivery(services.db)
  const podsWithoutSlot: DuePod[] = []
  async function deliverInSlot(podId: number): Promise<void> {
    const release = queue === 'outbound' ? await slots.acquire(signal, run) : await slots.untilUncontended(signal)
    try {
      if (performance.now() < run.endsAt) await deliverToPod(services, podId, run)
      else podsWithoutSlot.push({ podId, isProven: queue === 'outbound' })
    } finally {
      release?.()
    }
  }
  const results = await Promise.allSettled(podIds.map(deliverInSlot))
  await continueLater(services, podsWithoutSlot)
  const rejection = results.find((result) => result.status === 'rejected')
  if (rejection !== undefined && !signal.aborted) throw rejection.reason
}

interface RunOptions extends DeliverOptions {
  readonly limits: DeliveryLimits
  /** The end of the time of this run. */
  readonly endsAt: number
}

/**
 * Sends the due deliveries of one pod, by priority and then in the order of insertion, until none is due, the pod fails, or the time
 * of this run is over. The lease allows one run for a pod at a time in all processes; a second run ends at once.
 */
async function deliverToPod(services: Services, podId: number, run: RunOptions): Promise<void> {
  const { queue, signal, limits, endsAt } = run
  const leaseId = randomUUID()
  const request = { podId, leaseId, leaseMs: limits.leaseMs, onlyProven: queue === 'outbound' }
  const lease = await getSharedDelivery(services.db).lease(request)
  if (lease === undefined) return
  if (!lease.isLeased) return continueLater(services, [{ podId, isProven: false }])
  let result: DeliveryRunResult = { end: 'stopped', hasParticipated: false }
  try {
    result = await deliverInOrder({ services, remotePod: lease.pod, leaseId, queue, signal, limits }, endsAt)
  } finally {
    // `recordDeliveryResults` has ended the lease of a pod without further due deliveries, and of a silent one.
    if (result.end === 'time_over' || result.end === 'stopped') await releasePod(services.db, podId, leaseId)
  }
  const { end, hasParticipated } = result
  if (hasParticipated) await participateInPostponedPosts(services, podId)
  // A stopped run is not enqueued again: it would stop again. The sweeper finds the deliveries later.
  if (end === 'time_over') await continueLater(services, [{ podId, isProven: queue === 'outbound' }])
  if (end === 'yielded') await continueLater(services, [{ podId, isProven: false }])
}

/** Enqueues the remaining deliveries of pods. While the queue does not answer, they stay for the sweeper. */
async function continueLater(services: Services, duePods: readonly DuePod[]): Promise<void> {
  try {
    await startDeliveries(services, duePods)
  } catch (error) {
    if (!(error instanceof QueueUnavailable)) throw error
    services.log.warn({ pods: duePods.length, reason: error.message }, 'deliveries not enqueued')
  }
}

interface DeliveryRunResult {
  readonly end: DeliveryRunEnd
  /** The pod has accepted participations. */
  readonly hasParticipated: boolean
}

async function deliverInOrder(leased: LeasedRun, endsAt: number): Promise<DeliveryRunResult> {
  const { services, remotePod, limits } = leased
  const { recordLocalUserRound, isLocalUserRoundRecent } = getSharedDelivery(services.db)
  let progress: RunProgress = { failures: remotePod.failures, hasResponded: false, hasParticipated: false }
  while (performance.now() < endsAt) {
    const began = performance.now()
    const due = await findDueForRound(leased, progress)
    const preparedDeliveries = await prepareDeliveries(
      services,
      due.filter(({ isHeld }) => !isHeld),
    )
    const isOfLocalUser = hasMessageOfLocalUser(due)
    if (isOfLocalUser) recordLocalUserRound()
    const lastStartAt = isOfLocalUser ? endsAt : performance.now() + limits.relayRoundMs
    const attempts = await sendDeliveries(leased, preparedDeliveries, {
      hasResponded: progress.hasResponded,
      lastStartAt,
    })
    const assessment = assessPod(
      attempts.map(({ outcome }) => outcome),
      progress.failures,
    )
    const failedDeliveries = failuresOf(leased, attempts)
    const isMoreDue = await saveRound(leased, attempts, failedDeliveries, assessment)
    logRound(leased, attempts, failedDeliveries, performance.now() - began)
    logPodChange(leased, assessment, progress.failures)
    progress = progressAfter(progress, attempts, assessment)
    const end = endOfRun(attempts, assessment, isMoreDue)
    if (end !== undefined) return { end, hasParticipated: progress.hasParticipated }
    if (due.length > 0 && !isOfLocalUser && isLocalUserRoundRecent()) await pauseFor(performance.now() - began, leased)
  }
  return { end: 'time_over', hasParticipated: progress.hasParticipated }
}

/** The state of a pod after the rounds of this run. */
interface RunProgress {
  readonly failures: number
  readonly hasResponded: boolean
  /** The pod has accepted participations. */
  readonly hasParticipated: boolean
}

function progressAfter(
  { failures, hasResponded, hasParticipated }: RunProgress,
  attempts: readonly DeliveryAttempt[],
  assessment: PodHealthChange,
): RunProgress {
  return {
    failures: assessment.kind === 'available' ? 0 : failures,
    hasResponded: hasResponded || attempts.some(didPodRespond),
    hasParticipated: hasParticipated || attempts.some(isDeliveredParticipation),
  }
}

/** Undefined: the run continues. */
function endOfRun(
  attempts: readonly DeliveryAttempt[],
  assessment: PodHealthChange,
  isMoreDue: boolean,
): DeliveryRunEnd | undefined {
  if (assessment.kind === 'silent') return 'yielded'
  if (!isMoreDue) return 'none_due'
  const isInterrupted = attempts.some(({ outcome: { kind } }) => kind === 'not_started' || kind === 'interrupted')
  return isInterrupted ? 'stopped' : undefined
}

/** The first round is a probe with one delivery: an unreachable pod costs one request. */
async function findDueForRound(
  { services, remotePod, limits }: LeasedRun,
  { hasResponded }: RunProgress,
): Promise<readonly DueDelivery[]> {
  const { takeDue, isLocalUserRoundRecent } = getSharedDelivery(services.db)
  const due = await takeDue({ podId: remotePod.id, limit: hasResponded ? limits.rowsPerBatch : 1 })
  return selectForRound(due, isLocalUserRoundRecent() ? limits.relaysPerRoundWhileLocalUsersWrite : limits.rowsPerBatch)
}

/** Messages of local users are sent before relays and participations, in rounds of their own. */
function selectForRound(due: readonly DueDelivery[], relays: number): readonly DueDelivery[] {
  return hasMessageOfLocalUser(due)
    ? due.filter(({ priority }) => priority === DELIVERY_PRIORITY.localUsers)
    : due.slice(0, relays)
}

function hasMessageOfLocalUser(due: readonly DueDelivery[]): boolean {
  return due.some(({ priority }) => priority === DELIVERY_PRIORITY.localUsers)
}

/**
 * Pauses after a round of relays and participations while local users write: as long as the round, at most `relayPauseMs`. Each relay
 * and participation has its own signature, and signing keeps the processors from all other work.
 */
async function pauseFor(roundMs: number, { signal, limits }: LeasedRun): Promise<void> {
  await pause(Math.min(roundMs, limits.relayPauseMs), undefined, { signal }).catch(() => undefined)
}

function failuresOf({ limits }: LeasedRun, attempts: readonly DeliveryAttempt[]): readonly FailedDelivery[] {
  return attempts.flatMap(({ due, outcome, encryptedEnvelope }) => {
    const failure = toFailedDelivery(outcome, due, limits)
    return failure === undefined ? [] : [{ ...failure, id: due.id, encryptedEnvelope }]
  })
}

/** Writes the outcomes of a round. True: more is due, and this process still holds the lease. */
async function saveRound(
  { services, remotePod, leaseId, limits }: LeasedRun,
  attempts: readonly DeliveryAttempt[],
  failures: readonly FailedDelivery[],
  assessment: PodHealthChange,
): Promise<boolean> {
  return getSharedDelivery(services.db).record({
    podId: remotePod.id,
    leaseId,
    leaseMs: limits.leaseMs,
    delivered: attempts.filter(({ outcome }) => outcome.kind === 'delivered').map(({ due }) => due.id),
    failed: failures,
    podHealth: assessment,
    hasResponded: attempts.some(didPodRespond),
    redirectsBeforeCheck: limits.redirectsBeforeCheck,
  })
}

/** One line for a round: the number of deliveries by outcome, those that were given up, the duration, and the first traces. */
function logRound(
  { services, remotePod, queue, limits }: LeasedRun,
  attempts: readonly DeliveryAttempt[],
  failures: readonly FailedDelivery[],
  ms: number,
): void {
  if (attempts.length === 0) return
  const givenUp = failures.filter(({ isFinal }) => isFinal).length
  const counts: Record<string, number> = {}
  for (const { outcome } of attempts) counts[outcome.kind] = (counts[outcome.kind] ?? 0) + 1
  const ids = attempts.flatMap(({ due }) => due.trace?.replaceAll('-', '') ?? []) // as in `X-Request-Id`
  const traces = [...new Set(ids)].slice(0, limits.tracesOfLogLine)
  services.log.info(
    {
      pod: formatAddressHost(remotePod),
      queue,
      deliveries: attempts.length,
      ...counts,
      ...(givenUp > 0 && { givenUp }),
      ms: Math.round(ms),
      traces,
    },
    'delivery round finished',
  )
}

/** One line when a pod fails for the first time, and one when it responds again. */
function logPodChange({ services, remotePod }: LeasedRun, assessment: PodHealthChange, failures: number): void {
  if (assessment.kind === 'available' && failures > 0)
    services.log.info({ pod: formatAddressHost(remotePod) }, 'pod reachable again')
  if (assessment.kind === 'away' && failures === 0) {
    services.log.info({ pod: formatAddressHost(remotePod), reason: assessment.error }, 'pod unreachable')
  }
}

function isDeliveredParticipation({ due, outcome }: DeliveryAttempt): boolean {
  return due.priority === DELIVERY_PRIORITY.participation && outcome.kind === 'delivered'
}
