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
import { personContentOperations } from '../../src/domain/moderation/people/content-of-person.js'
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
import { countPictures } from '../../src/domain/photos/orphaned-files.js'
import { enqueuePodChecks } from '../../src/federation/discovery/pod-checks.js'
import { QUARANTINE_LIMITS } from '../../src/federation/inbound/limits.js'
import {
  birthdaysJob,
  checkPodsJob,
  checkStaffActivityJob,
  closeAccountsJob,
  closeInactiveJob,
  continueContentChangeJob,
  countPicturesJob,
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
import { changeRows } from '../../src/persistence/database/database.js'
import { readDatabaseTime, recordRun } from '../../src/persistence/database/periodic-runs.js'
import { pruneFilterHits } from '../../src/persistence/moderation/filters.js'
import { shortenOldAddresses } from '../../src/persistence/moderation/people-records.js'
import { giveUpDeliveries } from '../../src/persistence/outbound/dead-deliveries.js'
import { purgeDeletedPosts } from '../../src/persistence/posts/delete-posts.js'
import type { Services } from '../../src/services/services.js'
import { runPeriodically } from '../run-periodically.js'
import type { JobHandlers } from './job-handlers.js'

const ROW_BATCH_SIZE = 1_000
/** Time that one job spends on rows with a retention setting. Its deadline is 45 s; the next job continues. */
const SCHEDULED_PRUNE_MS = 20_000
/** Milliseconds for which one job counts the files of the store of pictures. */
const PICTURE_COUNT_MS = 20_000
/** Time that one job spends on the interactions of a person who has moved. */
const MOVE_MS = 20_000
/** PostgreSQL loses no schedule, and each check costs a request for each of them. */
const MAINTENANCE_INTERVAL_MS = { redis: 10_000, postgresql: 60_000 }

export const maintenanceSchedules: readonly Schedule[] = [
  { job: pruneJob, every: 600_000 },
  { job: checkPodsJob, every: 60_000 },
  { job: checkStaffActivityJob, every: 60_000 },
  { job: endPodRulesJob, every: 60_000 },
  { job: endNetworkRulesJob, every: 60_000 },
  { job: restrictRemainingPeopleJob, every: 60_000 },
  { job: continueContentChangeJob, every: 60_000 },
  { job: birthdaysJob, every: 60_000 },
  { job: digestsJob, every: 60_000 },
  { job: purgePostsJob, every: 60_000 },
  { job: findClustersJob, every: 60_000 },
  { job: closeAccountsJob, every: 60_000 },
  { job: closeInactiveJob, every: 3_600_000 },
  { job: countPicturesJob, every: 600_000 },
]

type MaintenanceJob =
  | typeof pruneJob
  | typeof purgePostsJob
  | typeof findClustersJob
  | typeof closeAccountsJob
  | typeof closeInactiveJob
  | typeof countPicturesJob
  | typeof resumeWaitingJob
  | typeof moveInteractionsJob
  | typeof checkPodsJob
  | typeof checkStaffActivityJob
  | typeof endPodRulesJob
  | typeof endNetworkRulesJob
  | typeof restrictRemainingPeopleJob
  | typeof continueContentChangeJob
  | typeof birthdaysJob
  | typeof digestsJob
  | typeof runBackgroundTaskJob

const OPERATIONS: BackgroundTaskHandlers = {
  ...importTaskHandlers,
  ...restrictTaskHandlers,
  ...contentChangeTaskHandlers,
  ...closingTaskHandlers,
  ...personContentOperations,
  ...purgeTaskHandlers,
  ...deadLetterTaskHandlers,
  ...quarantineTaskHandlers,
  ...discardTaskHandlers,
  ...cleaningTaskHandlers,
  ...applyFilterTaskHandlers,
  ...showContentTaskHandlers,
}

export const maintenanceHandlers: JobHandlers<MaintenanceJob> = {
  prune: (services) => prune(services),
  'check-pods': (services) => enqueuePodChecks(services),
  'check-attendance': (services) => checkAttendance(services),
  async 'end-pod-rules'(services) {
    await endPodRules(services)
  },
  async 'end-network-rules'(services) {
    await endNetworkRules(services)
  },
  'restrict-missed-people': (services) => restrictMissedPeople(services),
  'change-missed-content': (services) => continueMissedContentChange(services),
  birthdays: (services) => notifyContactsOfBirthdays(services),
  digests: (services) => sendDigests(services),
  'purge-posts': (services) => purgePosts(services),
  'find-clusters': (services) => findAndLogClusters(services),
  'close-accounts': (services) => closeDueAccountsAndLog(services),
  'close-inactive': (services) => closeInactiveAccounts(services),
  'count-pictures': (services, _job, signal) => countPictures(services, { milliseconds: PICTURE_COUNT_MS, signal }),
  'wake-waiting': (services, { data }) => resumeWaiting(services, data.entityKeys),
  'move-interactions': (services, { data }, signal) =>
    moveRemainingInteractions(services, data.personId, AbortSignal.any([signal, AbortSignal.timeout(MOVE_MS)])),
  'run-operation': (services, work, deadline) => runBackgroundTask(services, work, OPERATIONS, deadline),
}

/** Conditions of expired rows by table. Rows with a retention setting are removed by `continuePrune`. */
const expiredRows = {
  access_tokens: `expires_at < now() - interval '1 day'`,
  refresh_tokens: `expires_at < now() - interval '1 day'`,
  authorization_codes: `expires_at < now() - interval '1 day'`,
  oidc_records: 'expires_at < now()',
  kept_forms: 'expires_at < now()',
  second_steps: 'expires_at < now()',
  passkey_challenges: 'expires_at < now()',
  wrong_codes: `at < now() - interval '1 day'`,
  ended_sessions: `ended_at < now() - interval '15 days'`, // no session lives longer
  // A browser without a use in this time counts as new.
  browser_sessions: `last_used_at < now() - interval '${ACCOUNT_LIMITS.knownBrowserDays} days'`,
  // Anyone may register a client; these were never authorized.
  clients: `created_at < now() - interval '30 days'
    and not exists (select from authorizations where authorizations.client_id = clients.id)`,
  invitations: `used_at is null and expires_at < now() - interval '30 days'`,
  outbound_messages: `created_at < now() - interval '1 day'
    and not exists (select from deliveries where deliveries.message_id = outbound_messages.id)`,
  // A trigger deletes their files.
  photos: `pending and created_at < now() - interval '1 day'`,
  refused_uploads: `created_at < now() - interval '1 hour'`,
  figures: `minute < now() - interval '2 days'`,
  queue_samples: `minute < now() - interval '2 days'`,
  // Only the oldest ones, so that ids have no gap; the latest stays, because clients count from it.
  announcements: `id < coalesce(
    (select min(id) from announcements where created_at >= now() - interval '2 days'),
    (select max(id) from announcements)
  )`,
  quarantine: `last_at < now() - interval '${QUARANTINE_LIMITS.keptDays} days'`,
  pod_bytes: `day < current_date - 7`,
  pod_days: `day < current_date - 14`,
  pod_slots: `slot < now() - interval '25 hours'`,
  account_tokens: 'expires_at < now()',
  mails: `created_at < now() - interval '${MAIL_LIMITS.listedDays} days'`,
  mail_faults: `at < now() - interval '${MAIL_LIMITS.faultDays} days'`,
  pending_sign_ups: 'expires_at < now()',
  sign_up_addresses: `created_at < now() - interval '30 days'`,
  case_pictures: `requested_at < now() - interval '1 day'`,
  sign_up_attempts: `at < now() - interval '1 day'`,
  idempotency_keys: `created_at < now() - interval '1 day'`,
} as const

/** Deletes in small batches, so that other transactions do not wait long for its locks. */
export async function prune(services: Services): Promise<void> {
  let givenUp = ROW_BATCH_SIZE
  while (givenUp === ROW_BATCH_SIZE) givenUp = await giveUpDeliveries(services.db, ROW_BATCH_SIZE)
  for (const [category, rows] of Object.entries(await continuePrune(services, SCHEDULED_PRUNE_MS))) {
    if (rows > 0) services.log.info({ category, rows }, 'old rows deleted')
  }
  for (const [table, isExpired] of Object.entries(expiredRows)) {
    let deleted = ROW_BATCH_SIZE
    while (deleted === ROW_BATCH_SIZE) {
      const deleteChunk = `
        delete from ${table}
        where ctid = any(array(select ctid from ${table} where ${isExpired} limit ${ROW_BATCH_SIZE}))`
      deleted = await changeRows(services.db, deleteChunk)
      if (deleted > 0) services.log.info({ table, rows: deleted }, 'expired rows deleted')
    }
  }
  await pruneFilterHits(services.db, MODERATION_LIMITS.hitsStored)
  await deleteOldEvidence(services)
  await shortenOldAddresses(services.db)
  await recordRun(services.db, 'prune')
}

async function purgePosts(services: Services): Promise<void> {
  const posts = await purgeDeletedPosts(services.db)
  if (posts > 0) services.log.info({ posts }, 'deleted posts purged')
}

async function findAndLogClusters(services: Services): Promise<void> {
  const { opened, items } = await findClusters(services)
  if (items > 0) services.log.info({ opened, items }, 'spam clusters found')
}

async function closeDueAccountsAndLog(services: Services): Promise<void> {
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
