import type { Knex } from 'knex'
import { runOperationJob } from '../../jobs/definitions.js'
import { enqueueJob, type JobContext } from '../../jobs/outbox/outbox.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import {
  type BackgroundOperation,
  findOperation,
  insertOperation,
  lockOperation,
  type NewOperation,
  type OperationKind,
  recordProgress,
  touchStalledOperation,
} from '../../persistence/operations/operations.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { Refusal } from '../refusals.js'

export type { BackgroundOperation }

type OperationPod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'config'>

/** The work of one kind of operation. */
export interface OperationWork {
  /** Does the next part, at most 1 000 rows, in the given transaction. Nothing done and nothing skipped: the work is complete. */
  runChunk(
    pod: OperationPod,
    transaction: Knex.Transaction,
    operation: BackgroundOperation,
  ): Promise<{ readonly done: number; readonly skipped: number }>
  /** Runs in the transaction that completes the operation: its audit entry belongs here. */
  complete(pod: OperationPod, transaction: Knex.Transaction, operation: BackgroundOperation): Promise<void>
}

export type OperationWorks = Readonly<Record<OperationKind, OperationWork>>

/** Stores an operation with its job, in the transaction of the request. Refuses a second one of a kind on one target. */
export async function startOperation(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  actor: Actor,
  operation: Omit<NewOperation, 'actor'>,
): Promise<BackgroundOperation> {
  const { guid, name, role, via } = actor
  const inserted = await insertOperation(transaction, { ...operation, actor: { guid, name, role, via } })
  if (inserted === undefined) throw new Refusal('operation_running', 'The same operation is running already.')
  await enqueueJob(pod, transaction, runOperationJob, { operationId: inserted.id })
  return inserted
}

/**
 * Starts an operation unless the same one is unfinished, which then does the work too. An unfinished one without progress has lost its
 * job, which used up its attempts, and gets a new one.
 */
export async function continueOperation(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  { guid, name, role, via }: Actor,
  operation: Omit<NewOperation, 'actor'>,
): Promise<void> {
  const inserted = await insertOperation(transaction, { ...operation, actor: { guid, name, role, via } })
  const operationId = inserted?.id ?? (await touchStalledOperation(transaction, operation))
  if (operationId !== undefined) await enqueueJob(pod, transaction, runOperationJob, { operationId })
}

/** Runs an operation to its end. Each chunk commits with its progress, so that a repeated job continues behind the last one. */
export async function runOperation(
  pod: OperationPod,
  { data, finish }: Pick<JobContext, 'finish'> & { readonly data: { readonly operationId: number } },
  works: Partial<OperationWorks>,
  deadline: AbortSignal,
): Promise<void> {
  for (let isComplete = false; !isComplete; ) {
    deadline.throwIfAborted()
    isComplete = await inTransaction(pod, async (transaction) => {
      const operation = await lockOperation(transaction, data.operationId)
      if (operation === undefined) {
        await finish(transaction)
        return true
      }
      const work = works[operation.kind]
      if (work === undefined) throw new Error(`There is no operation ${operation.kind}.`)
      const chunk = await work.runChunk(pod, transaction, operation)
      const isLast = chunk.done + chunk.skipped === 0
      await recordProgress(transaction, operation.id, { ...chunk, state: isLast ? 'done' : 'running' })
      if (!isLast) return false
      await finish(transaction)
      await work.complete(pod, transaction, operation)
      pod.log.info({ operation: operation.id, kind: operation.kind }, 'operation done')
      return true
    })
  }
}

export async function readOperation({ db }: Pick<Pod, 'db'>, actor: Actor, id: number): Promise<BackgroundOperation> {
  requirePower(actor, 'moderation')
  const operation = await findOperation(db, id)
  if (operation === undefined) throw new Refusal('operation_not_found', 'There is no operation with this number.')
  return operation
}
