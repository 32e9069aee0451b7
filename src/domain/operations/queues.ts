import type { JobSummary } from '../../jobs/bullmq/job-summaries.js'
import { discardMessages } from '../../jobs/inbound/discard-messages.js'
import { jobsOfPod } from '../../jobs/operations/jobs-of-pod.js'
import { factsOfQueues } from '../../jobs/operations/queue-facts.js'
import { type JobTimes, type QueueRates, queueRates } from '../../jobs/operations/queue-rates.js'
import { sweepAllNow } from '../../jobs/outbox/outbox.js'
import type { JobState, QueueCounts } from '../../jobs/queues/inspect-queues.js'
import { QUEUES, type QueueName } from '../../jobs/queues/queue-names.js'
import {
  listRequestedStates,
  lockRequestedState,
  type RequestedQueueState,
  saveRequestedState,
} from '../../persistence/operations/queue-controls.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
import { recordOperatorChange } from './record-operator-change.js'

type QueueState = 'running' | 'paused' | 'draining' | 'drained'

export interface QueueOverview {
  readonly name: QueueName
  readonly state: QueueState
  /** Why an operator has stopped it; undefined: it runs. */
  readonly requested?: RequestedQueueState
  readonly waiting: number
  readonly active: number
  readonly delayed: number
  readonly failed: number
  readonly oldestSeconds: number | null
  readonly perMinute: QueueRates['perMinute']
  readonly wait: JobTimes
  readonly run: JobTimes
  readonly workers: number
}

type OperationsPod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'requestContext'>

/** Lists the queues with their work. Undefined: the queue store is unavailable. */
export async function listQueues(pod: Pick<Pod, 'db' | 'jobs'>): Promise<readonly QueueOverview[] | undefined> {
  const [queues, rates, requestedStates] = await Promise.all([
    factsOfQueues(pod).catch(() => null),
    queueRates(pod),
    listRequestedStates(pod.db),
  ])
  if (queues === null) return undefined
  return QUEUES.map((name) => {
    const { waiting, active, delayed, failed, oldestWaiting, workers } = queues[name]
    const requested = requestedStates.find(({ queue, state }) => queue === name && state !== 'running')
    return {
      name,
      waiting,
      active,
      delayed,
      failed,
      workers,
      ...rates[name],
      state:
        requested?.state === 'draining' && waiting + active + delayed === 0
          ? 'drained'
          : (requested?.state ?? 'running'),
      oldestSeconds: oldestWaiting,
      ...(requested && { requested }),
    }
  })
}

export async function findQueue(pod: Pick<Pod, 'db' | 'jobs'>, name: QueueName): Promise<QueueOverview | undefined> {
  return (await listQueues(pod))?.find((queue) => queue.name === name)
}

/** Lists the jobs of a queue without their data. */
export async function listJobs(
  { jobs }: Pick<Pod, 'jobs'>,
  queue: QueueName,
  state: JobState,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<{ readonly items: readonly JobSummary[]; readonly hasMore: boolean }> {
  const jobList = await jobs.list(queue, state, offset, limit + 1)
  return { items: jobList.slice(0, limit), hasMore: jobList.length > limit }
}

export interface QueueChange {
  readonly reason?: string | undefined
  /** When the queue runs again by itself. */
  readonly until?: Date | undefined
}

/** Dangerous changes need the name of the queue. */
export interface ConfirmedQueueChange extends QueueChange {
  readonly confirm?: string | undefined
}

/** Stops the workers of a queue: running jobs finish, no further one begins. Work is accepted and waits. False: it is paused already. */
export async function pauseQueue(
  pod: OperationsPod,
  actor: Actor,
  queue: QueueName,
  change: QueueChange,
): Promise<boolean> {
  requireStoppable(queue)
  const hasChanged = await save(pod, actor, queue, 'paused', change)
  await pod.jobs.pause(queue)
  return hasChanged
}

/** No new job is added, and the workers finish those that are there. What would have been added waits in the database. */
export async function drainQueue(
  pod: OperationsPod,
  actor: Actor,
  queue: QueueName,
  change: ConfirmedQueueChange,
): Promise<boolean> {
  requireStoppable(queue)
  await requireConfirmation(pod, actor, queue, change)
  const hasChanged = await save(pod, actor, queue, 'draining', change)
  await pod.jobs.resume(queue)
  return hasChanged
}

/** Ends a pause or a drain. False: the queue runs already. */
export async function resumeQueue(
  pod: OperationsPod,
  actor: Actor,
  queue: QueueName,
  change: QueueChange,
): Promise<boolean> {
  const hasChanged = await save(pod, actor, queue, 'running', change)
  await pod.jobs.resume(queue)
  return hasChanged
}

const PROMOTED_AT_MOST = 1_000

export interface Promotion extends QueueChange {
  /** Only jobs of this name. */
  readonly name?: string | undefined
  /** Only jobs that deliver to this pod or fetch from it, where that is known. */
  readonly pod?: string | undefined
}

/** Makes delayed jobs due, a thousand at most; returns how many. */
export async function promoteJobs(
  pod: OperationsPod,
  actor: Actor,
  queue: QueueName,
  { name, pod: host, ...change }: Promotion,
): Promise<number> {
  requirePower(actor, 'administration')
  const reason = requireReason(change)
  const count = await pod.jobs.promote(queue, PROMOTED_AT_MOST, async (jobs) => {
    const named = jobs.filter((job) => name === undefined || job.name === name)
    return host === undefined ? named : jobsOfPod(pod, host.toLowerCase(), named)
  })
  const target = { type: 'queue', label: queue }
  const after = { count, ...(name !== undefined && { name }), ...(host !== undefined && { pod: host }) }
  if (count > 0) await recordOperatorChange(pod, actor, { action: 'queue.promote', target, reason, after })
  return count
}

/**
 * Deletes the jobs that have not begun; returns how many. The sweeper adds those again that the database remembers. Messages in the
 * inbound queues, which nothing else has, become dead letters.
 */
export async function discardJobs(
  pod: OperationsPod,
  actor: Actor,
  queue: QueueName,
  change: ConfirmedQueueChange,
): Promise<number> {
  requireStoppable(queue)
  const preview = await requireConfirmation(pod, actor, queue, change)
  const reason = requireReason(change)
  const count = await discard(pod, queue, preview)
  const target = { type: 'queue', label: queue }
  if (count > 0) await recordOperatorChange(pod, actor, { action: 'queue.discard', target, reason, after: { count } })
  return count
}

async function discard(
  pod: Pick<Pod, 'db' | 'jobs'>,
  queue: QueueName,
  { waiting, delayed }: Pick<QueueCounts, 'waiting' | 'delayed'>,
): Promise<number> {
  if (queue === 'inbound' || queue === 'inbound-private') return discardMessages(pod, queue)
  await pod.jobs.discard(queue)
  await sweepAllNow(pod.db, queue)
  return waiting + delayed
}

async function requireConfirmation(
  pod: Pick<Pod, 'jobs'>,
  actor: Actor,
  queue: QueueName,
  { confirm, ...change }: ConfirmedQueueChange,
): Promise<Pick<QueueCounts, 'waiting' | 'delayed'>> {
  requirePower(actor, 'administration')
  requireReason(change)
  const { waiting, active, delayed } = await pod.jobs.counts(queue)
  if (confirm !== queue) {
    throw new Refusal('confirmation_needed', `Set confirm to ${queue} to change the queue.`, {
      details: { preview: { waiting, active, delayed } },
    })
  }
  return { waiting, delayed }
}

const ACTION_OF_STATE = { running: 'queue.resume', paused: 'queue.pause', draining: 'queue.drain' } as const

/** Stores the state that the operator has chosen, with an audit entry unless the queue has this state already. */
async function save(
  pod: OperationsPod,
  actor: Actor,
  queue: QueueName,
  state: RequestedQueueState['state'],
  { until = undefined, ...options }: QueueChange,
): Promise<boolean> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  const operation = { action: ACTION_OF_STATE[state], target: { type: 'queue', label: queue }, reason }
  return recordOperatorChange(pod, actor, operation, async (transaction) => {
    const before = await lockRequestedState(transaction, queue)
    const isSame = before.state === state && before.until?.getTime() === until?.getTime()
    if (isSame) return undefined
    await saveRequestedState(transaction, { queue, state, actor: actor.name, reason, until: until ?? null })
    return { state, until: until?.toISOString() ?? null }
  })
}

function requireStoppable(queue: QueueName): void {
  if (queue !== 'maintenance') return
  throw new Refusal('queue_not_pausable', 'The queue maintenance cannot be stopped: it finds lost work again.')
}
