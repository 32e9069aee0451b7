import type { Knex } from 'knex'
import type { AuditActor, AuditChannel } from '../moderation/audit-log.js'
import { NOW_SQL } from '../sql/database-time.js'

/** One entry of the table of work in the worker each. */
export type BackgroundTaskKind =
  | 'account.close'
  | 'cluster.clean'
  | 'cluster.restore'
  | 'content.show'
  | 'dead_letters.drop'
  | 'dead_letters.replay'
  | 'filter.apply'
  | 'people.content'
  | 'person.hide_content'
  | 'person.purge'
  | 'person.remove_content'
  | 'person.show_content'
  | 'pod_rules.import'
  | 'pod_rules.restrict'
  | 'pod_rules.undo_import'
  | 'quarantine.drop'
  | 'quarantine.release'
  | 'quarantine.replay'
  | 'queue.discard'

export type BackgroundTaskState = 'queued' | 'running' | 'done' | 'failed' | 'undone'

/** Long work that a job does in chunks. */
export interface BackgroundTask {
  readonly id: number
  readonly kind: BackgroundTaskKind
  readonly target: string
  readonly state: BackgroundTaskState
  readonly done: number
  readonly total: number
  readonly skipped: number
  readonly errors: readonly string[]
  readonly actor: AuditActor & {
    readonly via: AuditChannel
    readonly clientId?: string | undefined
    readonly traceId?: string | undefined
  }
  readonly reason: string
  /** Parameters of the work in addition to its target, and the position where it continues. */
  readonly details: Readonly<Record<string, unknown>>
  readonly createdAt: Date
  readonly changedAt: Date
}

export interface NewBackgroundTask extends Pick<BackgroundTask, 'kind' | 'target' | 'total' | 'actor' | 'reason'> {
  readonly details?: BackgroundTask['details']
}

/** Undefined: a task of this kind runs on the target. */
export async function insertBackgroundTask(
  transaction: Knex.Transaction,
  { actor, details = {}, ...task }: NewBackgroundTask,
): Promise<BackgroundTask | undefined> {
  const [row] = await transaction('operations')
    .insert({ ...task, actor: JSON.stringify(actor), details: JSON.stringify(details) })
    .onConflict(transaction.raw(`(kind, target) where state in ('queued', 'running')`))
    .ignore()
    .returning('*')
  return row
}

export async function findBackgroundTask(db: Knex, id: number): Promise<BackgroundTask | undefined> {
  return db('operations').where({ id }).first()
}

/** Lists unfinished tasks of some kinds, oldest first, then those that have failed in the last days, newest first. */
export async function listUnfinishedTasks(db: Knex, kinds: readonly string[]): Promise<readonly BackgroundTask[]> {
  const unfinished = await db('operations')
    .whereIn('kind', [...kinds])
    .whereIn('state', ['queued', 'running'])
    .orderBy('id')
    .limit(TASKS_SHOWN)
  const failed = await db('operations')
    .whereIn('kind', [...kinds])
    .where({ state: 'failed' })
    .whereRaw(`changed_at > now() - interval '${FAILED_SHOWN_DAYS} days'`)
    .orderBy('id', 'desc')
    .limit(TASKS_SHOWN)
  return [...unfinished, ...failed]
}

/** Finds the task of some kinds on a target that was started last. */
export async function findLatestTask(
  db: Knex,
  kinds: readonly string[],
  target: string,
): Promise<BackgroundTask | undefined> {
  return db('operations')
    .whereIn('kind', [...kinds])
    .where({ target })
    .orderBy('id', 'desc')
    .first()
}

const TASKS_SHOWN = 20
const FAILED_SHOWN_DAYS = 7

/** Sets some of the details of a task. */
export async function changeTaskDetails(
  transaction: Knex.Transaction,
  id: number,
  details: BackgroundTask['details'],
): Promise<void> {
  await transaction('operations')
    .where({ id })
    .update({ details: transaction.raw('details || ?::jsonb', [JSON.stringify(details)]) })
}

/** Removes the details of an unfinished task, so that its next chunk begins again. Waits for a running chunk. */
export async function resetTaskDetails(
  transaction: Knex.Transaction,
  { kind, target }: Pick<BackgroundTask, 'kind' | 'target'>,
): Promise<void> {
  await transaction('operations')
    .where({ kind, target })
    .whereIn('state', ['queued', 'running'])
    .update({ details: '{}' })
}

/** Locks a task that is not done. A failed one whose job is replayed continues, unless the same one was started again. */
export async function lockBackgroundTask(
  transaction: Knex.Transaction,
  id: number,
): Promise<BackgroundTask | undefined> {
  return transaction('operations')
    .where({ id })
    .whereRaw(
      `(state in ('queued', 'running') or state = 'failed' and not exists (
        select from operations as newer
        where newer.kind = operations.kind and newer.target = operations.target and newer.state in ('queued', 'running')
      ))`,
    )
    .forUpdate()
    .first()
}

/** Marks the task of a job that has used up its attempts. */
export async function failTaskOfJob(db: Knex, outboxId: number, fault: string): Promise<void> {
  await db.raw(
    `update operations set state = 'failed', errors = errors || to_jsonb(cast(? as text)), changed_at = ${NOW_SQL}
     from outbox
     where outbox.id = ? and outbox.name = 'run-operation' and operations.id = cast(outbox.data->>'operationId' as bigint)
       and operations.state in ('queued', 'running')`,
    [fault, outboxId],
  )
}

/** A task commits its progress with each chunk, which takes seconds. */
const STALLED_AFTER = '1 hour'

/** Finds an unfinished task without progress for an hour, and marks it as changed now. */
export async function touchStalledTask(
  transaction: Knex.Transaction,
  { kind, target }: Pick<BackgroundTask, 'kind' | 'target'>,
): Promise<number | undefined> {
  const [stalled] = await transaction('operations')
    .where({ kind, target })
    .whereIn('state', ['queued', 'running'])
    .whereRaw(`changed_at < now() - interval '${STALLED_AFTER}'`)
    .update({ changedAt: transaction.raw(NOW_SQL) })
    .returning('id')
  return stalled?.id
}

export async function recordProgress(
  transaction: Knex.Transaction,
  id: number,
  { done, skipped, state }: { readonly done: number; readonly skipped: number; readonly state: BackgroundTaskState },
): Promise<void> {
  await transaction('operations')
    .where({ id })
    .update({
      state,
      done: transaction.raw('done + ?', [done]),
      skipped: transaction.raw('skipped + ?', [skipped]),
      changedAt: transaction.raw(NOW_SQL),
    })
}
