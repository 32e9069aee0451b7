import type { Knex } from 'knex'
import { runBackgroundTaskJob } from '../../jobs/definitions.js'
import { NewerVersionNeeded } from '../../jobs/job-version.js'
import { enqueueJob } from '../../jobs/outbox/enqueue-jobs.js'
import type { JobContext } from '../../jobs/outbox/load-job.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import {
  type BackgroundTask,
  type BackgroundTaskKind,
  findBackgroundTask,
  insertBackgroundTask,
  lockBackgroundTask,
  type NewBackgroundTask,
  recordProgress,
  touchStalledTask,
} from '../../persistence/operations/background-tasks.js'
import type { Services } from '../../services/services.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { Refusal } from '../refusals.js'

export type { BackgroundTask }

export type BackgroundTaskDependencies = Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'log' | 'now'>

/** The work of one kind of background task. */
export interface BackgroundTaskHandler {
  /** Does the next part, at most 1 000 rows, in the given transaction. Nothing done and nothing skipped: the work is complete. */
  runChunk(
    services: BackgroundTaskDependencies,
    transaction: Knex.Transaction,
    task: BackgroundTask,
  ): Promise<{ readonly done: number; readonly skipped: number }>
  /** Runs in the transaction that completes the background task: its audit entry belongs here. */
  complete(services: BackgroundTaskDependencies, transaction: Knex.Transaction, task: BackgroundTask): Promise<void>
}

export type BackgroundTaskHandlers = Readonly<Record<BackgroundTaskKind, BackgroundTaskHandler>>

/** Stores a background task with its job, in the transaction of the request. Refuses a second one of a kind on one target. */
export async function startBackgroundTask(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  actor: Actor,
  task: Omit<NewBackgroundTask, 'actor'>,
): Promise<BackgroundTask> {
  const newTask = await insertBackgroundTask(transaction, { ...task, actor: actorOfTask(actor) })
  if (newTask === undefined) throw new Refusal('operation_running', 'The same operation is running already.')
  await enqueueJob(services, transaction, runBackgroundTaskJob, { operationId: newTask.id })
  return newTask
}

/**
 * Starts a background task unless the same one is unfinished, which then does the work too. An unfinished one without progress has lost its
 * job, which used up its attempts, and gets a new one.
 */
export async function continueBackgroundTask(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  actor: Actor,
  task: Omit<NewBackgroundTask, 'actor'>,
): Promise<void> {
  const newTask = await insertBackgroundTask(transaction, { ...task, actor: actorOfTask(actor) })
  const operationId = newTask?.id ?? (await touchStalledTask(transaction, task))
  if (operationId !== undefined) await enqueueJob(services, transaction, runBackgroundTaskJob, { operationId })
}

function actorOfTask({ guid, name, role, via, clientId, traceId }: Actor): NewBackgroundTask['actor'] {
  return { guid, name, role, via, clientId, traceId }
}

/** Runs a background task to its end. Each chunk commits with its progress, so that a repeated job continues after the last one. */
export async function runBackgroundTask(
  services: BackgroundTaskDependencies,
  { data, finish }: Pick<JobContext, 'finish'> & { readonly data: { readonly operationId: number } },
  handlers: Partial<BackgroundTaskHandlers>,
  deadline: AbortSignal,
): Promise<void> {
  for (let isComplete = false; !isComplete; ) {
    deadline.throwIfAborted()
    isComplete = await inRequestTransaction(services, async (transaction) => {
      const task = await lockBackgroundTask(transaction, data.operationId)
      if (task === undefined) {
        await finish(transaction)
        return true
      }
      const handler = handlers[task.kind]
      if (handler === undefined) throw new NewerVersionNeeded(`This program has no operation ${task.kind}.`)
      if (task.state === 'queued') services.log.info({ operation: task.id, kind: task.kind }, 'operation started')
      const chunk = await handler.runChunk(services, transaction, task)
      const isLast = chunk.done + chunk.skipped === 0
      await recordProgress(transaction, task.id, { ...chunk, state: isLast ? 'done' : 'running' })
      if (!isLast) return false
      await finish(transaction)
      await handler.complete(services, transaction, task)
      services.log.info({ operation: task.id, kind: task.kind }, 'operation done')
      return true
    })
  }
}

export async function getBackgroundTask(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
): Promise<BackgroundTask> {
  requirePower(actor, 'moderation')
  const task = await findBackgroundTask(db, id)
  if (task === undefined) throw new Refusal('operation_not_found', 'There is no operation with this number.')
  return task
}
