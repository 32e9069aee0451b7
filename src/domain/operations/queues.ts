import type { JobSummary } from '../../jobs/bullmq/job-summaries.js'
import { discardMessages } from '../../jobs/inbound/discard-messages.js'
import { jobsOfPod } from '../../jobs/operations/jobs-of-pod.js'
import { type JobTimes, type QueueRates, readQueueRates } from '../../jobs/operations/queue-rates.js'
import { type QueueStatus, readQueueStatus, readQueueStatuses } from '../../jobs/operations/work-status.js'
import { sweepAllNow } from '../../jobs/outbox/sweep-rows.js'
import type { JobState, QueueCounts } from '../../jobs/queues/inspect-queues.js'
import { findPlace, type JobPosition } from '../../jobs/queues/job-places.js'
import { type InboundQueue, isInboundQueue, QUEUES, type QueueName } from '../../jobs/queues/queue-names.js'
import { findLatestTask } from '../../persistence/operations/background-tasks.js'
import {
  listRequestedStates,
  lockRequestedState,
  type RequestedQueueState,
  saveRequestedState,
} from '../../persistence/operations/queue-controls.js'
import type { OperationsServices, Services } from '../../services/services.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
import { type BackgroundTask, type BackgroundTaskHandlers, startBackgroundTask } from './background-tasks.js'
import { type OperatorChange, recordOperatorChange } from './record-operator-change.js'

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

/** Lists the queues with their work. Undefined: the queue store is unavailable. */
export async function listQueues(
  services: Pick<Services, 'db' | 'jobs'>,
): Promise<readonly QueueOverview[] | undefined> {
  const [queues, rates, requestedStates] = await Promise.all([
    readQueueStatuses(services).catch(() => null),
    readQueueRates(services),
    listRequestedStates(services.db),
  ])
  if (queues === null) return undefined
  return QUEUES.map((name) => overviewOf(name, queues[name], rates[name], requestedStates))
}

/** Reads one queue with its work, and no others. Undefined: the queue store is unavailable. */
export async function findQueue(
  services: Pick<Services, 'db' | 'jobs'>,
  name: QueueName,
): Promise<QueueOverview | undefined> {
  const [status, rates, requestedStates] = await Promise.all([
    readQueueStatus(services, name).catch(() => undefined),
    readQueueRates(services),
    listRequestedStates(services.db),
  ])
  return status && overviewOf(name, status, rates[name], requestedStates)
}

function overviewOf(
  name: QueueName,
  { waiting, active, delayed, failed, oldestWaiting, workers }: QueueStatus,
  rates: QueueRates,
  requestedStates: readonly RequestedQueueState[],
): QueueOverview {
  const requested = requestedStates.find(({ queue, state }) => queue === name && state !== 'running')
  const isDrained = requested?.state === 'draining' && waiting + active + delayed === 0
  return {
    name,
    waiting,
    active,
    delayed,
    failed,
    workers,
    ...rates,
    state: isDrained ? 'drained' : (requested?.state ?? 'running'),
    oldestSeconds: oldestWaiting,
    ...(requested && { requested }),
  }
}

/** The part of a list of jobs after or before one of them; without either, its beginning. */
export interface JobPage {
  readonly after?: JobPosition | undefined
  readonly before?: JobPosition | undefined
  readonly limit: number
}

export interface ListedJobs {
  readonly items: readonly JobSummary[]
  /** The jobs to which the next and the previous page refer; undefined: there is no such page. */
  readonly last: JobPosition | undefined
  readonly first: JobPosition | undefined
}

/** Lists the jobs of a queue without their data. A page begins after a job, not at a number, because the lists change meanwhile. */
export async function listJobs(
  { jobs }: Pick<Services, 'jobs'>,
  queue: QueueName,
  state: JobState,
  { after, before, limit }: JobPage,
): Promise<ListedJobs> {
  const position = after ?? before
  const { place, isThere } = position ? await findPlace(jobs, { queue, state }, position) : { place: 0, isThere: false }
  const begin = after === undefined ? Math.max(0, place - limit) : place + Number(isThere)
  const count = before === undefined || place === 0 ? limit : Math.min(limit, place)
  const jobList = await jobs.list(queue, state, begin, count + 1)
  const items = jobList.slice(0, count)
  const positionOf = (index: number): JobPosition | undefined => {
    const job = items[index]
    return job && { id: job.id, place: begin + index, finishedAt: job.finishedAt }
  }
  return {
    items,
    last: jobList.length > count ? positionOf(items.length - 1) : undefined,
    first: begin > 0 ? (positionOf(0) ?? position) : undefined,
  }
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
  services: OperationsServices,
  actor: Actor,
  queue: QueueName,
  change: QueueChange,
): Promise<boolean> {
  requireStoppable(queue)
  const hasChanged = await saveQueueState(services, actor, { queue, state: 'paused' }, change)
  await applyState(services, queue, () => services.jobs.pause(queue))
  return hasChanged
}

/** Drains a queue: no new job is added, and the workers finish the jobs that are there. New work waits in the database. */
export async function drainQueue(
  services: OperationsServices,
  actor: Actor,
  queue: QueueName,
  change: ConfirmedQueueChange,
): Promise<boolean> {
  requireStoppable(queue)
  await requireConfirmation(services, actor, queue, change)
  const hasChanged = await saveQueueState(services, actor, { queue, state: 'draining' }, change)
  await applyState(services, queue, () => services.jobs.resume(queue))
  return hasChanged
}

/** Ends a pause or a drain. False: the queue runs already. */
export async function resumeQueue(
  services: OperationsServices,
  actor: Actor,
  queue: QueueName,
  change: QueueChange,
): Promise<boolean> {
  const hasChanged = await saveQueueState(services, actor, { queue, state: 'running' }, change)
  await applyState(services, queue, () => services.jobs.resume(queue))
  return hasChanged
}

const MAX_PROMOTED = 1_000

export interface Promotion extends QueueChange {
  /** Only jobs of this name. */
  readonly name?: string | undefined
  /** Only jobs that deliver to this pod or fetch from it, where that is known. */
  readonly pod?: string | undefined
}

/** Makes delayed jobs due, a thousand at most; returns how many. */
export async function promoteJobs(
  services: OperationsServices,
  actor: Actor,
  queue: QueueName,
  { name, pod: host, ...change }: Promotion,
): Promise<number> {
  requirePower(actor, 'administration')
  const reason = requireReason(change)
  const target = { type: 'queue', label: queue }
  const only = { ...(name !== undefined && { name }), ...(host !== undefined && { pod: host }) }
  let count = 0
  try {
    await services.jobs.promote(queue, {
      limit: MAX_PROMOTED,
      choose: async (jobs) => {
        const jobsWithName = jobs.filter((job) => name === undefined || job.name === name)
        return host === undefined ? jobsWithName : jobsOfPod(services, host.toLowerCase(), jobsWithName)
      },
      onPromoted: (jobs) => {
        count += jobs
      },
    })
  } finally {
    // Jobs that are due now stay so when a later page cannot be read.
    const after = { count, ...only }
    if (count > 0) await recordOperatorChange(services, actor, { action: 'queue.promote', target, reason, after })
  }
  return count
}

export interface DiscardOutcome {
  /** The discarded jobs, of an inbound queue the messages. In the background: the jobs that will be discarded. */
  readonly count: number
  /** The work in the background; undefined: it is done. */
  readonly task?: BackgroundTask | undefined
}

/**
 * Deletes the jobs that have not begun. The sweeper adds those again that the database remembers. Messages in the inbound queues, which
 * nothing else has, become dead letters; those of many jobs in the background.
 */
export async function discardJobs(
  services: OperationsServices,
  actor: Actor,
  queue: QueueName,
  change: ConfirmedQueueChange,
): Promise<DiscardOutcome> {
  requireStoppable(queue)
  const { waiting, delayed } = await requireConfirmation(services, actor, queue, change)
  const auditFields = { action: DISCARD, target: { type: 'queue', label: queue }, reason: requireReason(change) }
  const total = waiting + delayed
  if (isInboundQueue(queue) && total > JOBS_OF_CHUNK)
    return startDiscarding(services, actor, queue, { ...auditFields, total })
  if (total === 0) return { count: 0 }
  // The entry is first: jobs may be deleted although the queue does not answer.
  await recordOperatorChange(services, actor, { ...auditFields, after: { count: total } })
  return { count: await discard(services, queue, total) }
}

const DISCARD = 'queue.discard'

/** Inbound jobs that one request or chunk discards. Each of their messages is stored. */
const JOBS_OF_CHUNK = 200

async function discard(services: Pick<Services, 'db' | 'jobs'>, queue: QueueName, total: number): Promise<number> {
  if (isInboundQueue(queue)) return (await discardMessages(services, queue, { limit: JOBS_OF_CHUNK })).messages
  try {
    await services.jobs.discard(queue)
  } finally {
    await sweepAllNow(services.db, queue)
  }
  return total
}

async function startDiscarding(
  services: OperationsServices,
  actor: Actor,
  queue: InboundQueue,
  { total, ...audited }: OperatorChange & { readonly total: number; readonly reason: string },
): Promise<DiscardOutcome> {
  // Jobs have the time of the process that adds them.
  const addedBy = new Date().toISOString()
  let task: BackgroundTask | undefined
  await recordOperatorChange(services, actor, audited, async (transaction) => {
    task = await startBackgroundTask(services, transaction, actor, {
      kind: DISCARD,
      target: queue,
      total,
      reason: audited.reason,
      details: { addedBy },
    })
    return { count: total }
  })
  return { count: total, task }
}

/** Discards the jobs that a queue had at the request. The target is the queue. */
export const discardTaskHandlers: Pick<BackgroundTaskHandlers, typeof DISCARD> = {
  [DISCARD]: {
    /** The messages are committed apart from the progress: a repeated chunk does not find their jobs again. */
    async runChunk(services, _transaction, { target, details }) {
      const choice = { addedBy: new Date(String(details['addedBy'])), limit: JOBS_OF_CHUNK }
      const { jobs, begun } = await discardMessages(services, target as InboundQueue, choice)
      return { done: jobs, skipped: begun }
    },
    /** The request has written the audit entry. */
    async complete() {},
  },
}

/** Finds the latest discarding of a queue in the background, unless it is done. */
export async function findDiscarding(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  queue: QueueName,
): Promise<BackgroundTask | undefined> {
  requirePower(actor, 'administration')
  const latest = await findLatestTask(db, [DISCARD], queue)
  return latest?.state === 'done' ? undefined : latest
}

async function requireConfirmation(
  services: Pick<Services, 'jobs'>,
  actor: Actor,
  queue: QueueName,
  { confirm, ...change }: ConfirmedQueueChange,
): Promise<Pick<QueueCounts, 'waiting' | 'delayed'>> {
  requirePower(actor, 'administration')
  requireReason(change)
  const { waiting, active, delayed } = await services.jobs.counts(queue)
  if (confirm !== queue) {
    throw new Refusal('confirmation_needed', `Set confirm to ${queue} to change the queue.`, {
      details: { preview: { waiting, active, delayed } },
    })
  }
  return { waiting, delayed }
}

const ACTION_OF_STATE = { running: 'queue.resume', paused: 'queue.pause', draining: 'queue.drain' } as const

/** Stores the state that the operator has chosen, with an audit entry unless the queue has this state already, and applies it here. */
async function saveQueueState(
  services: OperationsServices,
  actor: Actor,
  { queue, state }: { readonly queue: QueueName; readonly state: RequestedQueueState['state'] },
  { until = undefined, ...options }: QueueChange,
): Promise<boolean> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  const auditFields = { action: ACTION_OF_STATE[state], target: { type: 'queue', label: queue }, reason }
  const hasChanged = await recordOperatorChange(services, actor, auditFields, async (transaction) => {
    const before = await lockRequestedState(transaction, queue)
    const isSame = before.state === state && before.until?.getTime() === until?.getTime()
    if (isSame) return undefined
    await saveRequestedState(transaction, { queue, state, actor: actor.name, reason, until: until ?? null })
    return { state, until: until?.toISOString() ?? null }
  })
  await applyState(services, queue, () => refuseJobsOfDrained(services))
  return hasChanged
}

/** The state is stored and audited: an error would say that it is not. The next heartbeat applies it again. */
async function applyState({ log }: Pick<Services, 'log'>, queue: QueueName, apply: () => Promise<void>): Promise<void> {
  try {
    await apply()
  } catch (err) {
    log.warn({ err, queue }, 'state of the queue not applied yet')
  }
}

/** This process refuses jobs at once; all others when they read the requested states. */
async function refuseJobsOfDrained({ db, jobs }: Pick<Services, 'db' | 'jobs'>): Promise<void> {
  const states = await listRequestedStates(db)
  jobs.refuseJobsFor(QUEUES.filter((name) => states.some(({ queue, state }) => queue === name && state === 'draining')))
}

function requireStoppable(queue: QueueName): void {
  if (queue !== 'maintenance') return
  throw new Refusal('queue_not_pausable', 'The queue maintenance cannot be stopped: it finds lost work again.')
}
