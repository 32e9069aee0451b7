import { endTemporaryActions } from '../src/domain/moderation/actions.js'
import { enqueueDeliveries } from '../src/jobs/outbox/enqueue-deliveries.js'
import { failUnknownQueues, findOverdueRows, postponeSweep } from '../src/jobs/outbox/outbox.js'
import { QUEUES, type QueueName } from '../src/jobs/queues/queue-names.js'
import { WAITING_LIMITS } from '../src/jobs/waiting/limits.js'
import { boundMessages } from '../src/jobs/waiting/message-bounds.js'
import { resumeOverdue } from '../src/jobs/waiting/resume-messages.js'
import { enqueueSigners, findHostsWithLostLookups, IS_LOST_LOOKUP } from '../src/jobs/waiting/signer-lookups.js'
import { queryPreparedRow } from '../src/persistence/database/database.js'
import { recordRun } from '../src/persistence/database/periodic-runs.js'
import { findOverduePods, OVERDUE_PODS } from '../src/persistence/outbound/due-deliveries.js'
import type { Pod } from '../src/pod/pod.js'
import { WORK_LIMITS } from './limits.js'
import { runPeriodically } from './run-periodically.js'

const ADD_AGAIN = { within: 10_000, again: true } as const
const CHECK_INTERVAL_MS = 4_000

/**
 * Checks every four seconds for work without a job. A timer, not a job: it does not depend on a queue that may be unavailable or
 * emptied, and on an idle pod a check costs one small statement, where a job costs ten.
 */
export function startSweeping(pod: Pod, every = CHECK_INTERVAL_MS): { stop(): Promise<void> } {
  let boundedAt = Number.NEGATIVE_INFINITY
  return runPeriodically(every, async () => {
    try {
      const { hasDueWork, hasEndedActions, isRunRecordStale, hasBoundedRows } = await checkForDueWork(pod)
      if (hasDueWork) await sweep(pod)
      else if (isRunRecordStale) await recordRun(pod.db, 'sweep')
      if (hasEndedActions) await endTemporaryActions(pod)
      if (hasBoundedRows && performance.now() - boundedAt >= WAITING_LIMITS.pollIntervalMs) {
        boundedAt = performance.now()
        await boundMessages(pod)
      }
    } catch (err) {
      pod.log.debug({ err }, 'sweep failed') // health shows when the last sweep was
    }
  })
}

interface DueWork {
  readonly hasDueWork: boolean
  /** A temporary action of a moderator has ended. */
  readonly hasEndedActions: boolean
  /** The record of the last run is older than 20 seconds; the health check reads it. */
  readonly isRunRecordStale: boolean
  /** There are waiting messages or dead letters, which have limits. */
  readonly hasBoundedRows: boolean
}

const anythingDue = `
  select
    exists (select from outbox where failed_at is null and sweep_at <= now())
    or exists (select from waiting where due_at <= now())
    or exists (select from signer_lookups where ${IS_LOST_LOOKUP})
    or exists (select ${OVERDUE_PODS})
    as "hasDueWork",
    exists (
      select from moderation_actions where until <= now() and can_be_undone and undone_by_id is null
    ) as "hasEndedActions",
    not exists (select from periodic where name = 'sweep' and last_run_at > now() - interval '20 seconds') as "isRunRecordStale",
    exists (select from waiting) or exists (select from outbox where failed_at is not null) as "hasBoundedRows"`

export async function checkForDueWork({ db }: Pick<Pod, 'db'>): Promise<DueWork> {
  return queryPreparedRow<DueWork>(db, 'anything-due', anythingDue, [])
}

/**
 * Adds jobs again for rows that no job has picked up: the hand-over was lost, or the queue was emptied or has evicted keys. One run
 * at a time in all processes; a job that still exists is not added twice.
 */
export async function sweep(pod: Pod): Promise<void> {
  await pod.db.transaction(async (transaction) => {
    if (!(await isMyTurn(transaction))) return
    await failUnknownQueues(transaction)
    await resumeOverdue(pod, transaction, WORK_LIMITS.sweptRows)

    // Mostly no row is left, and then the queues are not counted.
    const isAnythingLeft = (await findOverdueRows(transaction, QUEUES, 1)).length > 0
    const rows = isAnythingLeft
      ? await findOverdueRows(transaction, await queuesWithRoom(pod), WORK_LIMITS.sweptRows)
      : []
    if (rows.length > 0) {
      await pod.jobs.handOver(rows, ADD_AGAIN)
      await postponeSweep(transaction, rows)
      pod.log.info({ rows: rows.length }, 'outbox rows enqueued again')
    }
    await enqueueDeliveriesAgain(pod, transaction)
    await lookUpSignersAgain(pod, transaction)
    await recordRun(transaction, 'sweep')
  })
}

/** For pods whose next attempt is due, and for those whose job was lost. */
async function enqueueDeliveriesAgain(pod: Pod, transaction: Pod['db']): Promise<void> {
  const pods = await findOverduePods(transaction, WORK_LIMITS.sweptRows)
  if (pods.length === 0) return
  const open = await queuesWithRoom(pod)
  const duePods = pods.filter(({ proven }) => open.includes(proven ? 'outbound' : 'outbound-slow'))
  await enqueueDeliveries(pod, duePods, ADD_AGAIN)
}

/** For hosts whose retry is due, and for those whose job was lost. */
async function lookUpSignersAgain(pod: Pod, transaction: Pod['db']): Promise<void> {
  const hosts = await findHostsWithLostLookups(transaction, WORK_LIMITS.sweptRows)
  if (hosts.length === 0 || !(await queuesWithRoom(pod)).includes('fetch-unproven')) return
  await enqueueSigners(pod, hosts, ADD_AGAIN)
}

async function queuesWithRoom({ jobs }: Pod): Promise<readonly QueueName[]> {
  const waiting = await Promise.all(QUEUES.map(async (queue) => (await jobs.counts(queue)).waiting))
  return QUEUES.filter((queue, index) => jobs.acceptsJobs(queue) && (waiting[index] ?? 0) < WORK_LIMITS.sweptInto)
}

async function isMyTurn(transaction: Pod['db']): Promise<boolean> {
  const { rows } = await transaction.raw(`select pg_try_advisory_xact_lock(hashtextextended('sweep', 0)) as mine`)
  return rows[0].mine
}
