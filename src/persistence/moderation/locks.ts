import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** A lock of an account in force: an action on its person, or a cleaning that has locked its author. */
export interface LockInForce {
  readonly userId: number
  readonly until: Date | null
  /** The account was already locked without an action: by the pod that this pod has taken over. */
  readonly wasLocked: boolean
}

const IS_IN_FORCE_SQL = 'can_be_undone and undone_by_id is null'

/** Both read the index `moderation_actions_in_force` or `moderation_actions_target`. */
const LOCK_OF_PERSON_SQL = `from moderation_actions
  where target_type = 'person' and target_guid = people.guid and kind = 'lock' and ${IS_IN_FORCE_SQL}`
const LOCK_OF_CLEANING_SQL = `from moderation_actions
  where target_type = 'cluster' and kind = 'cluster.clean' and ${IS_IN_FORCE_SQL} and details->'lockedIds' @> to_jsonb(users.id)`

/** Finds the locks in force of some accounts. */
export async function findLocksInForce(db: Knex, userIds: readonly number[]): Promise<readonly LockInForce[]> {
  return queryRows<LockInForce>(db, LOCKS_IN_FORCE_SQL, { userIds: [...userIds] })
}

const LOCKS_IN_FORCE_SQL = `
  select users.id as "userId", locks.until, locks."wasLocked"
  from users join people on people.id = users.person_id
  cross join lateral (
    select until, details @> '{"wasLocked": true}' as "wasLocked" ${LOCK_OF_PERSON_SQL}
    union all
    select until, false ${LOCK_OF_CLEANING_SQL}
  ) as locks
  where users.id = any(:userIds)`

/** Opens accounts that no action and no cleaning locks any more. Accounts that have moved stay locked. The users are locked rows. */
export async function openUnlockedUsers(transaction: Knex.Transaction, userIds: readonly number[]): Promise<void> {
  await transaction.raw(OPENED_USERS_SQL, { userIds: [...userIds] })
}

const OPENED_USERS_SQL = `
  update users set locked_at = null from people
  where users.id = any(:userIds) and people.id = users.person_id and people.closed_at is null
    and not exists (select ${LOCK_OF_PERSON_SQL}) and not exists (select ${LOCK_OF_CLEANING_SQL})`
