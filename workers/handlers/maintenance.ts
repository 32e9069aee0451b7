import { closeDueAccounts, closingTaskHandlers } from '../../src/domain/accounts/closing/close-account.js'
import { closeInactiveAccounts } from '../../src/domain/accounts/closing/close-inactive.js'
import { ACCOUNT_LIMITS } from '../../src/domain/accounts/limits.js'
import { checkAttendance } from '../../src/domain/accounts/sign-ups/unattended.js'
import { MAIL_LIMITS } from '../../src/domain/mail/limits.js'
import { enqueueDigests } from '../../src/domain/mail/notification-mails.js'
import { deleteOldEvidence } from '../../src/domain/moderation/cases.js'
import { cleaningTaskHandlers } from '../../src/domain/moderation/clusters/cleaning-work.js'
import { findClusters } from '../../src/domain/moderation/clusters/find-clusters.js'
import { applyFilterTaskHandlers } from '../../src/domain/moderation/filters/apply-filter.js'
import {
  contentChangeTaskHandlers,
  continueMissedContentChange,
} from '../../src/domain/moderation/follow-up-restrictions.js'
import { showContentTaskHandlers } from '../../src/domain/moderation/hide-content.js'
import { MODERATION_LIMITS } from '../../src/domain/moderation/limits.js'
import { personContentTaskHandlers } from '../../src/domain/moderation/people/content-of-person.js'
import { purgeTaskHandlers } from '../../src/domain/moderation/people/purge-person.js'
import { importTaskHandlers } from '../../src/domain/moderation/pods/pod-rule-imports.js'
import { endPodRules } from '../../src/domain/moderation/pods/pod-rules.js'
import { restrictMissedPeople, restrictTaskHandlers } from '../../src/domain/moderation/pods/restrict-pod-people.js'
import { endNetworkRules } from '../../src/domain/moderation/sign-ups/network-rules.js'
import { notifyOfTodaysBirthdays } from '../../src/domain/notifications/birthdays.js'
import { type BackgroundTaskHandlers, runBackgroundTask } from '../../src/domain/operations/background-tasks.js'
import { deadLetterTaskHandlers } from '../../src/domain/operations/dead-letters.js'
import { continuePrune } from '../../src/domain/operations/prune.js'
import { quarantineTaskHandlers } from '../../src/domain/operations/quarantine.js'
import { discardTaskHandlers } from '../../src/domain/operations/queues.js'
import { moveRemainingInteractions } from '../../src/domain/people/move-person.js'
import { deleteMovedFiles } from '../../src/domain/photos/moved-files.js'
import { countPictures } from '../../src/domain/photos/orphaned-files.js'
import { IMPORT_LIMITS } from '../../src/federation/archives/limits.js'
import { addPodChecks } from '../../src/federation/discovery/scheduled-pod-checks.js'
import { INBOUND_LIMITS, QUARANTINE_LIMITS } from '../../src/federation/inbound/limits.js'
import {
  birthdaysJob,
  checkPodsJob,
  checkStaffActivityJob,
  closeAccountsJob,
  closeInactiveJob,
  continueContentChangeJob,
  countPicturesJob,
  deleteMovedFilesJob,
  digestsJob,
  endNetworkRulesJob,
  endPodRulesJob,
  findClustersJob,
  type moveInteractionsJob,
  pruneJob,
  purgePostsJob,
  restrictRemainingPeopleJob,
  type resumeWaitingJob,
  type runBackgroundTaskJob,
} from '../../src/jobs/definitions.js'
import { sweepAllNow } from '../../src/jobs/outbox/sweep-rows.js'
import type { Schedule } from '../../src/jobs/queues/schedule-jobs.js'
import { resumeWaiting } from '../../src/jobs/waiting/resume-messages.js'
import { deleteMovedCredentials } from '../../src/persistence/accounts/moved-accounts.js'
import { readDatabaseTime, recordRun } from '../../src/persistence/database/periodic-runs.js'
import { pruneFilterHits } from '../../src/persistence/moderation/filters.js'
import { shortenOldAddresses } from '../../src/persistence/moderation/people-records.js'
import { giveUpDeliveriesInBatches } from '../../src/persistence/outbound/dead-deliveries.js'
import { UNDELIVERED_LIMITS } from '../../src/persistence/outbound/limits.js'
import { purgeDeletedPosts } from '../../src/persistence/posts/delete-posts.js'
import {
  deleteBatch,
  type ExpiryDays,
  emptyDeliveredPosts,
  expiredRowConditions,
} from '../../src/persistence/retention/expired-rows.js'
import type { Services } from '../../src/services/services.js'
import type { Handler, HandlerTable } from '../run-job.js'
import { runPeriodically } from '../run-periodically.js'
import type { JobHandlers } from './job-handlers.js'

const ROW_BATCH_SIZE = 1_000
/** Time that one job spends on rows with a retention setting. Its deadline is 45 s; the next job continues. */
const SCHEDULED_PRUNE_MS = 20_000
/** Milliseconds for which one job counts the files of the store of pictures. */
const PICTURE_COUNT_MS = 20_000
/** Milliseconds for which one job deletes the picture files of accounts that have moved. */
const MOVED_FILES_MS = 20_000
/** Time that one job spends on the interactions of a person who has moved. */
const MOVE_MS = 20_000
/** PostgreSQL loses no schedule, and each check costs a request for each of them. */
const MAINTENANCE_INTERVAL_MS = { redis: 10_000, postgresql: 60_000 }

/** Work of a scheduled job. Each has a job of its own, so that an error in one does not keep the others back. */
interface ScheduledWork extends Schedule {
  readonly run: (services: Services, deadline: AbortSignal) => Promise<unknown>
}

export const maintenanceSchedules: readonly ScheduledWork[] = [
  { job: pruneJob, intervalMs: 600_000, run: prune },
  { job: checkPodsJob, intervalMs: 60_000, run: addPodChecks },
  { job: checkStaffActivityJob, intervalMs: 60_000, run: checkAttendance },
  { job: endPodRulesJob, intervalMs: 60_000, run: endPodRules },
  { job: endNetworkRulesJob, intervalMs: 60_000, run: endNetworkRules },
  { job: restrictRemainingPeopleJob, intervalMs: 60_000, run: restrictMissedPeople },
  { job: continueContentChangeJob, intervalMs: 60_000, run: continueMissedContentChange },
  { job: birthdaysJob, intervalMs: 60_000, run: notifyContactsOfBirthdays },
  { job: digestsJob, intervalMs: 60_000, run: sendDigests },
  { job: purgePostsJob, intervalMs: 60_000, run: purgePosts },
  { job: findClustersJob, intervalMs: 60_000, run: searchClusters },
  { job: closeAccountsJob, intervalMs: 60_000, run: closeAccounts },
  { job: closeInactiveJob, intervalMs: 3_600_000, run: closeInactiveAccounts },
  {
    job: countPicturesJob,
    intervalMs: 600_000,
    run: (services, signal) => countPictures(services, { milliseconds: PICTURE_COUNT_MS, signal }),
  },
  { job: deleteMovedFilesJob, intervalMs: 600_000, run: deleteFilesOfMoved },
]

const BACKGROUND_TASK_HANDLERS: BackgroundTaskHandlers = {
  ...importTaskHandlers,
  ...restrictTaskHandlers,
  ...contentChangeTaskHandlers,
  ...closingTaskHandlers,
  ...personContentTaskHandlers,
  ...purgeTaskHandlers,
  ...deadLetterTaskHandlers,
  ...quarantineTaskHandlers,
  ...discardTaskHandlers,
  ...cleaningTaskHandlers,
  ...applyFilterTaskHandlers,
  ...showContentTaskHandlers,
}

const scheduledHandlers: HandlerTable = Object.fromEntries(
  maintenanceSchedules.map(({ job, run }): [string, Handler] => [
    job.name,
    async (services, _job, deadline) => {
      await run(services, deadline)
    },
  ]),
)

/** Jobs that other work enqueues. */
const enqueuedHandlers: JobHandlers<
  typeof resumeWaitingJob | typeof moveInteractionsJob | typeof runBackgroundTaskJob
> = {
  'wake-waiting': (services, { data }) => resumeWaiting(services, data.entityKeys),
  'move-interactions': (services, { data }, signal) =>
    moveRemainingInteractions(services, data.personId, AbortSignal.any([signal, AbortSignal.timeout(MOVE_MS)])),
  'run-operation': (services, work, deadline) => runBackgroundTask(services, work, BACKGROUND_TASK_HANDLERS, deadline),
}

export const maintenanceHandlers: HandlerTable = { ...scheduledHandlers, ...enqueuedHandlers }

/** Limits of the subjects of these rows. */
const EXPIRY_DAYS: ExpiryDays = {
  knownBrowsers: ACCOUNT_LIMITS.knownBrowserDays,
  quarantine: QUARANTINE_LIMITS.keptDays,
  deliveryReports: UNDELIVERED_LIMITS.reportDays,
  mails: MAIL_LIMITS.listedDays,
  mailFaults: MAIL_LIMITS.faultDays,
  importItems: IMPORT_LIMITS.itemDays,
  claimedFollowers: IMPORT_LIMITS.claimDays,
  forwarded: INBOUND_LIMITS.forwardedDays,
}

/** Gives up, deletes or shortens what is too old, in small batches, so that other transactions do not wait long for its locks. */
export async function prune(services: Services): Promise<void> {
  await giveUpDeliveriesInBatches(services.db)
  await pruneBySettings(services)
  await emptyDelivered(services)
  await deleteExpiredRows(services)
  await pruneFilterHits(services.db, MODERATION_LIMITS.hitsStored)
  await deleteOldEvidence(services)
  await shortenOldAddresses(services.db)
  await deleteCredentialsOfMoved(services)
  await recordRun(services.db, 'prune')
}

/** Rows with a retention setting. */
async function pruneBySettings(services: Services): Promise<void> {
  for (const [category, rows] of Object.entries(await continuePrune(services, SCHEDULED_PRUNE_MS))) {
    if (rows > 0) services.log.info({ category, rows }, 'old rows deleted')
  }
}

async function emptyDelivered({ db, log }: Services): Promise<void> {
  await repeatFullBatches(async () => {
    const messages = await emptyDeliveredPosts(db, ROW_BATCH_SIZE)
    if (messages > 0) log.info({ messages }, 'texts of delivered messages deleted')
    return messages
  })
}

async function deleteExpiredRows({ db, log }: Services): Promise<void> {
  for (const [table, isExpired] of Object.entries(expiredRowConditions(EXPIRY_DAYS))) {
    await repeatFullBatches(async () => {
      const deletedRows = await deleteBatch(db, table, isExpired, ROW_BATCH_SIZE)
      if (deletedRows > 0) log.info({ table, rows: deletedRows }, 'expired rows deleted')
      return deletedRows
    })
  }
}

/** Repeats a batch until it changes fewer rows than it may. */
async function repeatFullBatches(runBatch: () => Promise<number>): Promise<void> {
  let changedRows = ROW_BATCH_SIZE
  while (changedRows === ROW_BATCH_SIZE) changedRows = await runBatch()
}

async function deleteCredentialsOfMoved({ db, log }: Services): Promise<void> {
  const accounts = await deleteMovedCredentials(db, ACCOUNT_LIMITS.movedAccountDays)
  if (accounts > 0) log.info({ accounts }, 'passwords of moved accounts deleted')
}

async function deleteFilesOfMoved({ db, pictures, log }: Services, signal: AbortSignal): Promise<void> {
  const photos = await deleteMovedFiles(db, pictures, { milliseconds: MOVED_FILES_MS, signal })
  if (photos > 0) log.info({ photos }, 'picture files of moved accounts deleted')
}

async function purgePosts(services: Services): Promise<void> {
  const posts = await purgeDeletedPosts(services.db)
  if (posts > 0) services.log.info({ posts }, 'deleted posts purged')
}

async function searchClusters(services: Services): Promise<void> {
  const { opened, items } = await findClusters(services)
  if (items > 0) services.log.info({ opened, items }, 'spam clusters found')
}

async function closeAccounts(services: Services): Promise<void> {
  const accounts = await closeDueAccounts(services)
  if (accounts > 0) services.log.info({ accounts }, 'accounts are being closed')
}

/** Sends digests that are due by the clock of the database, as for birthdays. */
async function sendDigests(services: Services): Promise<void> {
  if (services.config.mail === undefined) return
  const now = await readDatabaseTime(services.db)
  const digests = await enqueueDigests({ ...services, now: () => now })
  if (digests > 0) services.log.info({ digests }, 'daily summaries enqueued')
}

/** Notifies contacts of the birthdays of the day by the clock of the database: clocks of processes may be wrong. */
async function notifyContactsOfBirthdays(services: Services): Promise<void> {
  const now = await readDatabaseTime(services.db)
  const notifications = await notifyOfTodaysBirthdays({ ...services, now: () => now })
  if (notifications > 0) services.log.info({ notifications }, 'birthday notifications created')
}

/** Restores the schedules that an emptied Redis has lost. It has lost the jobs as well, so every outbox row is due then. */
export function startSchedules(services: Services): { stop(): Promise<void> } {
  const periodicCheck = runPeriodically(
    MAINTENANCE_INTERVAL_MS[services.config.redisUrl === undefined ? 'postgresql' : 'redis'],
    async () => {
      try {
        if (await services.jobs.keepSchedules('maintenance', maintenanceSchedules)) await sweepAllNow(services.db)
      } catch (err) {
        services.log.debug({ err }, 'schedules not checked')
      }
    },
  )
  const othersEnded = services.jobs
    .endOtherSchedules('maintenance', maintenanceSchedules)
    .catch((err) => services.log.debug({ err }, 'old schedules not removed'))
  return {
    async stop() {
      await Promise.all([periodicCheck.stop(), othersEnded])
    },
  }
}
