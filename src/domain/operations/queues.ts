import { queueFacts } from '../../jobs/operations/queue-facts.js'
import { type JobTimes, type QueueRates, queueRates } from '../../jobs/operations/queue-rates.js'
import { QUEUES, type QueueName } from '../../jobs/queues/queue-names.js'
import { listQueueWishes, type QueueWish, saveQueueWish } from '../../persistence/operations/queue-controls.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
import { recordOperation } from './record-operation.js'

type QueueState = 'running' | 'paused' | 'draining' | 'drained'

export interface QueueOverview {
  readonly name: QueueName
  readonly state: QueueState
  /** Why an operator has stopped it; undefined: it runs. */
  readonly wish?: QueueWish
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

type Pieces = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'claimedKey'>

/** Lists the queues with their work. Undefined: the queue store is unavailable. */
export async function listQueues(pod: Pick<Pod, 'db' | 'jobs'>): Promise<readonly QueueOverview[] | undefined> {
  const [{ queues }, rates, wishes] = await Promise.all([queueFacts(pod), queueRates(pod), listQueueWishes(pod.db)])
  if (queues === null) return undefined
  return QUEUES.map((name) => {
    const { waiting, active, delayed, failed, oldestWaiting, workers } = queues[name]
    const wish = wishes.find(({ queue, state }) => queue === name && state !== 'running')
    return {
      ...{ name, waiting, active, delayed, failed, workers, ...rates[name] },
      state: wish?.state === 'draining' && waiting + active + delayed === 0 ? 'drained' : (wish?.state ?? 'running'),
      oldestSeconds: oldestWaiting,
      ...(wish && { wish }),
    }
  })
}

export interface QueueChange {
  readonly reason?: string | undefined
  /** When the queue runs again by itself. */
  readonly until?: Date | undefined
}

/** Stops the workers of a queue: running jobs finish, no further one begins. Work is accepted and waits. */
export async function pauseQueue(pod: Pieces, actor: Actor, queue: QueueName, change: QueueChange): Promise<void> {
  requireStoppable(queue)
  await save(pod, actor, queue, 'paused', change)
  await pod.jobs.pause(queue)
}

/** No new job is added, and the workers finish those that are there. What would have been added waits in the database. */
export async function drainQueue(pod: Pieces, actor: Actor, queue: QueueName, change: QueueChange): Promise<void> {
  requireStoppable(queue)
  await save(pod, actor, queue, 'draining', change)
  await pod.jobs.resume(queue)
}

/** Ends a pause or a drain. */
export async function resumeQueue(pod: Pieces, actor: Actor, queue: QueueName, change: QueueChange): Promise<void> {
  await save(pod, actor, queue, 'running', change)
  await pod.jobs.resume(queue)
}

const PROMOTED_AT_MOST = 1_000

/** Makes delayed jobs due, a thousand at most; returns how many. */
export async function promoteJobs(pod: Pieces, actor: Actor, queue: QueueName, change: QueueChange): Promise<number> {
  requirePower(actor, 'administration')
  const reason = requireReason(change)
  const count = await pod.jobs.promote(queue, PROMOTED_AT_MOST)
  const target = { type: 'queue', label: queue }
  await recordOperation(pod, actor, { action: 'queue.promote', target, reason, after: { count } })
  return count
}

const ACTION_OF_STATE = { running: 'queue.resume', paused: 'queue.pause', draining: 'queue.drain' } as const

async function save(
  pod: Pieces,
  actor: Actor,
  queue: QueueName,
  state: QueueWish['state'],
  { until, ...options }: QueueChange,
): Promise<void> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  const operation = { action: ACTION_OF_STATE[state], target: { type: 'queue', label: queue }, reason }
  await recordOperation(pod, actor, operation, async (transaction) => {
    await saveQueueWish(transaction, { queue, state, actor: actor.name, reason, until: until ?? null })
    return { state, until: until?.toISOString() ?? null }
  })
}

function requireStoppable(queue: QueueName): void {
  if (queue !== 'maintenance') return
  throw new Refusal('queue_not_pausable', 'The queue maintenance cannot be stopped: it finds lost work again.')
}
