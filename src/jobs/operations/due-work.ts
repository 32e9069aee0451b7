import { queryPreparedRow } from '../../persistence/database/database.js'
import { OVERDUE_PODS_SQL } from '../../persistence/outbound/due-deliveries.js'
import type { Services } from '../../services/services.js'
import { IS_LOST_LOOKUP_SQL } from '../waiting/signer-lookups.js'

interface DueWork {
  readonly hasDueWork: boolean
  /** A temporary action of a moderator has ended. */
  readonly hasEndedActions: boolean
  /** The time of a rule for pods is over. */
  readonly hasEndedPodRules: boolean
  /** The record of the last run is older than 20 seconds; the health check reads it. */
  readonly isRunRecordStale: boolean
  /** There are waiting messages or dead letters, which have limits. */
  readonly hasLimitedRows: boolean
}

/** Checks for work of the sweeper with one statement, which is small on an idle pod. */
export async function checkForDueWork({ db }: Pick<Services, 'db'>): Promise<DueWork> {
  return queryPreparedRow<DueWork>(db, 'due-work', DUE_WORK_SQL, [])
}

const DUE_WORK_SQL = `
  select
    exists (select from outbox where failed_at is null and sweep_at <= now())
    or exists (select from waiting where due_at <= now())
    or exists (select from signer_lookups where ${IS_LOST_LOOKUP_SQL})
    or exists (select ${OVERDUE_PODS_SQL})
    as "hasDueWork",
    exists (
      select from moderation_actions where until <= now() and can_be_undone and undone_by_id is null
    ) as "hasEndedActions",
    exists (select from pod_rules where until <= now()) as "hasEndedPodRules",
    not exists (select from periodic where name = 'sweep' and last_run_at > now() - interval '20 seconds') as "isRunRecordStale",
    exists (select from waiting) or exists (select from outbox where failed_at is not null) as "hasLimitedRows"`
