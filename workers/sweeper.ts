import type { Knex } from 'knex'
import { endTemporaryActions } from '../src/domain/moderation/actions.js'
import { endPodRules } from '../src/domain/moderation/pods/pod-rules.js'
import { checkForDueWork } from '../src/jobs/operations/due-work.js'
import { giveUpRowsOfUnknownQueues } from '../src/jobs/outbox/give-up-rows.js'
import { startDeliveries } from '../src/jobs/outbox/start-deliveries.js'
import { findOverdueRows, postponeSweep } from '../src/jobs/outbox/sweep-rows.js'
import { QUEUES, type QueueName } from '../src/jobs/queues/queue-names.js'
import { deleteMessagesBeyondLimits } from '../src/jobs/waiting/delete-beyond-limits.js'
import { WAITING_LIMITS } from '../src/jobs/waiting/limits.js'
import { resumeOverdue } from '../src/jobs/waiting/resume-messages.js'
import { addSignerLookups, findHostsWithLostLookups } from '../src/jobs/waiting/signer-lookups.js'
import { queryRow } from '../src/persistence/database/database.js'
import { recordRun } from '../src/persistence/database/periodic-runs.js'
import { findOverduePods } from '../src/persistence/outbound/due-deliveries.js'
import type { Services } from '../src/services/services.js'
import { WORK_LIMITS } from './limits.js'
import { runPeriodically } from './run-periodically.js'

const ADD_AGAIN = { withinMs: 10_000, mayExist: true } as const
const CHECK_INTERVAL_MS = 4_000

/**
 * Checks every four seconds for work without a job. A timer, not a job: it does not depend on a queue that may be unavailable or
 * emptied, and on an idle pod a check costs one small statement, where a job costs ten.
 */
export function startSweeping(services: Services, intervalMs = CHECK_INTERVAL_MS): { stop(): Promise<void> } {
  let boundedAt = Number.NEGATIVE_INFINITY
  return runPeriodically(intervalMs, async () => {
    try {
      const dueWork = await checkForDueWork(services)
      const { hasDueWork, hasEndedActions, hasEndedPodRules, isRunRecordStale, hasLimitedRows } = dueWork
      if (hasDueWork) await sweep(services)
      else if (isRunRecordStale) await recordRun(services.db, 'sweep')
      // If one of these fails each time, the others must run nevertheless.
      const logAs = (text: string) => (err: unknown) => services.log.warn({ err }, text)
      if (hasEndedActions) await endTemporaryActions(services).catch(logAs('temporary actions not ended'))
      // The scheduled job alone would be late: it has to wait for its turn in the queue.
      if (hasEndedPodRules) await endPodRules(services).catch(logAs('rules for pods not ended'))
      if (hasLimitedRows && performance.now() - boundedAt >= WAITING_LIMITS.pollIntervalMs) {
        boundedAt = performance.now()
        // At most one line in ten seconds. Without the bounds the tables grow, so it must be seen.
        await deleteMessagesBeyondLimits(services).catch(logAs('waiting messages beyond limits not deleted'))
      }
    } catch (err) {
      services.log.debug({ err }, 'sweep failed') // health shows when the last sweep was
    }
  })
}

/**
 * Adds jobs again for rows that no job has picked up: the hand-over was lost, or the queue was emptied or has evicted keys. One sweep
 * runs at a time in all processes. A job that still exists is not added twice.
 */
export async function sweep(services: Services): Promise<void> {
  await services.db.transaction(async (transaction) => {
    if (!(await tryLockSweep(transaction))) return
    await giveUpRowsOfUnknownQueues(transaction)
    await resumeOverdue(services, transaction, WORK_LIMITS.sweptRows)

    await enqueueOverdueRows(services, transaction, QUEUES)
    await startDeliveriesAgain(services, transaction)
    await lookUpSignersAgain(services, transaction)
    await recordRun(transaction, 'sweep')
  })
}

/**
 * The sweep of an isolated copy adds jobs only for the rows of its own queues: accepted messages of the backup, and work that had not
 * begun when the backup was made.
 */
export function startSweepingCopy(
  services: Services,
  queues: readonly QueueName[],
  intervalMs = CHECK_INTERVAL_MS,
): { stop(): Promise<void> } {
  return runPeriodically(intervalMs, async () => {
    try {
      await services.db.transaction(async (transaction) => {
        if (await tryLockSweep(transaction)) await enqueueOverdueRows(services, transaction, queues)
      })
    } catch (err) {
      services.log.debug({ err }, 'sweep failed')
    }
  })
}

async function enqueueOverdueRows(
  services: Services,
  transaction: Knex.Transaction,
  queues: readonly QueueName[],
): Promise<void> {
  // Usually no row is left; then the queues need not be counted.
  if ((await findOverdueRows(transaction, queues, 1)).length === 0) return
  const open = await listQueuesBelowLimit(services)
  const openQueues = queues.filter((queue) => open.includes(queue))
  const rows = await findOverdueRows(transaction, openQueues, WORK_LIMITS.sweptRows)
  if (rows.length === 0) return
  await services.jobs.addOutboxRows(rows, ADD_AGAIN)
  await postponeSweep(transaction, rows)
  services.log.info({ rows: rows.length }, 'outbox rows enqueued again')
}

/** Enqueues deliveries to pods whose next attempt is due, and to pods whose job was lost. */
async function startDeliveriesAgain(services: Services, transaction: Knex.Transaction): Promise<void> {
  const pods = await findOverduePods(transaction, WORK_LIMITS.sweptRows)
  if (pods.length === 0) return
  const open = await listQueuesBelowLimit(services)
  const duePods = pods.filter(({ isProven }) => open.includes(isProven ? 'outbound' : 'outbound-slow'))
  await startDeliveries(services, duePods, ADD_AGAIN)
}

/** Enqueues lookups at hosts whose retry is due, and at hosts whose job was lost. */
async function lookUpSignersAgain(services: Services, transaction: Knex.Transaction): Promise<void> {
  const hosts = await findHostsWithLostLookups(transaction, WORK_LIMITS.sweptRows)
  if (hosts.length === 0 || !(await listQueuesBelowLimit(services)).includes('fetch-unproven')) return
  await addSignerLookups(services, hosts, ADD_AGAIN)
}

async function listQueuesBelowLimit({ jobs }: Services): Promise<readonly QueueName[]> {
  const waitingJobs = await Promise.all(QUEUES.map(async (queue) => (await jobs.counts(queue)).waiting))
  return QUEUES.filter(
    (queue, index) => jobs.acceptsJobs(queue) && (waitingJobs[index] ?? 0) < WORK_LIMITS.maxJobsBeforeSweepStops,
  )
}

async function tryLockSweep(transaction: Knex.Transaction): Promise<boolean> {
  const { isLocked } = await queryRow<{ readonly isLocked: boolean }>(
    transaction,
    `select pg_try_advisory_xact_lock(hashtextextended('sweep', 0)) as "isLocked"`,
  )
  return isLocked
}
