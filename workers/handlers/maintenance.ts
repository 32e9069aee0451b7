import { closeDueAccounts, closingOperation } from '../../src/domain/accounts/closing/close-account.js'
import { closeInactiveAccounts } from '../../src/domain/accounts/closing/close-inactive.js'
import { checkAttendance } from '../../src/domain/accounts/sign-ups/unattended.js'
import { MAIL_LIMITS } from '../../src/domain/mail/limits.js'
import { enqueueDigests } from '../../src/domain/mail/notices.js'
import { eraseOldEvidence } from '../../src/domain/moderation/cases.js'
import { cleaningOperations } from '../../src/domain/moderation/clusters/cleaning-work.js'
import { findClusters } from '../../src/domain/moderation/clusters/find-clusters.js'
import { contentOperation, continueLostContentChange } from '../../src/domain/moderation/follow-up-restrictions.js'
import { MODERATION_LIMITS } from '../../src/domain/moderation/limits.js'
import { personContentOperations } from '../../src/domain/moderation/people/content-of-person.js'
import { purgeOperation } from '../../src/domain/moderation/people/purge-person.js'
import { importOperations } from '../../src/domain/moderation/pods/pod-rule-imports.js'
import { endPodRules } from '../../src/domain/moderation/pods/pod-rules.js'
import { restrictMissedPeople, restrictOperation } from '../../src/domain/moderation/pods/restrict-pod-people.js'
import { endNetworkRules } from '../../src/domain/moderation/sign-ups/network-rules.js'
import { notifyOfTodaysBirthdays } from '../../src/domain/notifications/birthdays.js'
import { deadLetterOperations } from '../../src/domain/operations/dead-letters.js'
import { type OperationWorks, runOperation } from '../../src/domain/operations/long-operations.js'
import { continuePrune } from '../../src/domain/operations/prune.js'
import { enqueuePodChecks } from '../../src/federation/discovery/pod-checks.js'
import { QUARANTINE_LIMITS } from '../../src/federation/inbound/limits.js'
import {
  birthdaysJob,
  changeMissedContentJob,
  checkAttendanceJob,
  checkPodsJob,
  closeAccountsJob,
  closeInactiveJob,
  digestsJob,
  endNetworkRulesJob,
  endPodRulesJob,
  findClustersJob,
  type Handlers,
  pruneJob,
  purgePostsJob,
  restrictMissedPeopleJob,
  type runOperationJob,
  type wakeWaitingJob,
} from '../../src/jobs/definitions.js'
import { type JobContext, sweepAllNow } from '../../src/jobs/outbox/outbox.js'
import type { Schedule } from '../../src/jobs/queues/schedule-jobs.js'
import { resumeWaiting } from '../../src/jobs/waiting/resume-messages.js'
import { readDatabaseTime, recordRun } from '../../src/persistence/database/periodic-runs.js'
import { pruneFilterHits } from '../../src/persistence/moderation/filters.js'
import { shortenOldAddresses } from '../../src/persistence/moderation/people-records.js'
import { giveUpDeliveries } from '../../src/persistence/outbound/due-deliveries.js'
import { purgeDeletedPosts } from '../../src/persistence/posts/delete-posts.js'
import type { Pod } from '../../src/pod/pod.js'
import { runPeriodically } from '../run-periodically.js'

const ROW_BATCH_SIZE = 1_000
/** Time that one job spends on rows with a retention setting. Its deadline is 45 s; the next job continues. */
const SCHEDULED_PRUNE_MS = 20_000
/** PostgreSQL loses no schedule, and each check costs a request for each of them. */
const MAINTENANCE_INTERVAL_MS = { redis: 10_000, postgresql: 60_000 }

export const maintenanceSchedules: readonly Schedule[] = [
  { job: pruneJob, every: 600_000 },
  { job: checkPodsJob, every: 60_000 },
  { job: checkAttendanceJob, every: 60_000 },
  { job: endPodRulesJob, every: 60_000 },
  { job: endNetworkRulesJob, every: 60_000 },
  { job: restrictMissedPeopleJob, every: 60_000 },
  { job: changeMissedContentJob, every: 60_000 },
  { job: birthdaysJob, every: 60_000 },
  { job: digestsJob, every: 60_000 },
  { job: purgePostsJob, every: 60_000 },
  { job: findClustersJob, every: 60_000 },
  { job: closeAccountsJob, every: 60_000 },
  { job: closeInactiveJob, every: 3_600_000 },
]

type MaintenanceJob =
  | typeof pruneJob
  | typeof purgePostsJob
  | typeof findClustersJob
  | typeof closeAccountsJob
  | typeof closeInactiveJob
  | typeof wakeWaitingJob
  | typeof checkPodsJob
  | typeof checkAttendanceJob
  | typeof endPodRulesJob
  | typeof endNetworkRulesJob
  | typeof restrictMissedPeopleJob
  | typeof changeMissedContentJob
  | typeof birthdaysJob
  | typeof digestsJob
  | typeof runOperationJob

const OPERATIONS: OperationWorks = {
  ...importOperations,
  ...restrictOperation,
  ...contentOperation,
  ...closingOperation,
  ...personContentOperations,
  ...purgeOperation,
  ...deadLetterOperations,
  ...cleaningOperations,
}

export const maintenanceHandlers: Handlers<MaintenanceJob, Pod, JobContext> = {
  prune: (pod) => prune(pod),
  'check-pods': (pod) => enqueuePodChecks(pod),
  'check-attendance': (pod) => checkAttendance(pod),
  async 'end-pod-rules'(pod) {
    await endPodRules(pod)
  },
  async 'end-network-rules'(pod) {
    await endNetworkRules(pod)
  },
  'restrict-missed-people': (pod) => restrictMissedPeople(pod),
  'change-missed-content': (pod) => continueLostContentChange(pod),
  birthdays: (pod) => notifyContactsOfBirthdays(pod),
  digests: (pod) => sendDigests(pod),
  'purge-posts': (pod) => purgePosts(pod),
  'find-clusters': (pod) => logClusters(pod),
  'close-accounts': (pod) => logClosedAccounts(pod),
  'close-inactive': (pod) => closeInactiveAccounts(pod),
  'wake-waiting': (pod, { data }) => resumeWaiting(pod, data.entityKeys),
  'run-operation': (pod, work, deadline) => runOperation(pod, work, OPERATIONS, deadline),
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
  // A browser that was not used for so long counts as a new one.
  ended_sessions: `ended_at < now() - interval '15 days'`, // no session lives longer
  browser_sessions: `last_used_at < now() - interval '90 days'`,
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
  quarantine: `last_at < now() - interval '${QUARANTINE_LIMITS.days} days'`,
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
export async function prune(pod: Pod): Promise<void> {
  let givenUp = ROW_BATCH_SIZE
  while (givenUp === ROW_BATCH_SIZE) givenUp = await giveUpDeliveries(pod.db, ROW_BATCH_SIZE)
  for (const [category, rows] of Object.entries(await continuePrune(pod, SCHEDULED_PRUNE_MS))) {
    if (rows > 0) pod.log.info({ category, rows }, 'old rows deleted')
  }
  for (const [table, isExpired] of Object.entries(expiredRows)) {
    let deleted = ROW_BATCH_SIZE
    while (deleted === ROW_BATCH_SIZE) {
      const deleteChunk = `
        delete from ${table}
        where ctid = any(array(select ctid from ${table} where ${isExpired} limit ${ROW_BATCH_SIZE}))`
      deleted = (await pod.db.raw(deleteChunk)).rowCount
      if (deleted > 0) pod.log.info({ table, rows: deleted }, 'expired rows deleted')
    }
  }
  await pruneFilterHits(pod.db, MODERATION_LIMITS.hitsKept)
  await eraseOldEvidence(pod)
  await shortenOldAddresses(pod.db)
  await recordRun(pod.db, 'prune')
}

async function purgePosts(pod: Pod): Promise<void> {
  const posts = await purgeDeletedPosts(pod.db)
  if (posts > 0) pod.log.info({ posts }, 'deleted posts purged')
}

async function logClusters(pod: Pod): Promise<void> {
  const { opened, items } = await findClusters(pod)
  if (items > 0) pod.log.info({ opened, items }, 'spam clusters found')
}

async function logClosedAccounts(pod: Pod): Promise<void> {
  const accounts = await closeDueAccounts(pod)
  if (accounts > 0) pod.log.info({ accounts }, 'accounts are being closed')
}

/** By the clock of the database, as birthdays. */
async function sendDigests(pod: Pod): Promise<void> {
  if (pod.config.mail === undefined) return
  const now = await readDatabaseTime(pod.db)
  const digests = await enqueueDigests({ ...pod, now: () => now })
  if (digests > 0) pod.log.info({ digests }, 'daily summaries enqueued')
}

/** By the clock of the database: clocks of processes may be wrong. */
async function notifyContactsOfBirthdays(pod: Pod): Promise<void> {
  const now = await readDatabaseTime(pod.db)
  const notifications = await notifyOfTodaysBirthdays({ ...pod, now: () => now })
  if (notifications > 0) pod.log.info({ notifications }, 'birthday notifications created')
}

/** Restores the schedules that an emptied Redis has lost. It has lost the jobs as well, so every outbox row is due then. */
export function startSchedules(pod: Pod): { stop(): Promise<void> } {
  const looking = runPeriodically(
    MAINTENANCE_INTERVAL_MS[pod.config.redisUrl === undefined ? 'postgresql' : 'redis'],
    async () => {
      try {
        if (await pod.jobs.keepSchedules('maintenance', maintenanceSchedules)) await sweepAllNow(pod.db)
      } catch (err) {
        pod.log.debug({ err }, 'schedules not checked')
      }
    },
  )
  const othersEnded = pod.jobs
    .endOtherSchedules('maintenance', maintenanceSchedules)
    .catch((err) => pod.log.debug({ err }, 'old schedules not removed'))
  return {
    async stop() {
      await Promise.all([looking.stop(), othersEnded])
    },
  }
}
