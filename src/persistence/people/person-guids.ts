import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { isUniqueViolation } from '../database/errors.js'
import { NOW_SQL } from '../sql/database-time.js'

/**
 * Records that a signature of these people was verified for the first time. If a person without a verified signature holds the guid
 * that one of them has on their own pod, they swap guids.
 */
export async function recordFirstSignatures(
  transaction: Knex.Transaction,
  addresses: readonly string[],
): Promise<void> {
  if (addresses.length === 0) return
  const rows = await queryRows<{ readonly id: number; readonly isDisplaced: boolean }>(
    transaction,
    FIRST_SIGNATURES_SQL,
    [[...addresses]],
  )
  await restoreOwnGuids(
    transaction,
    rows.filter(({ isDisplaced }) => isDisplaced).map(({ id }) => id),
  )
}

/** Locks in id order against deadlocks, and with a lock that does not block new references to the people. */
const FIRST_SIGNATURES_SQL = `
  with locked as (
    select id from people
    where address = any(?) and proven_at is null and pod_id is not null
    order by id for no key update
  )
  update people set proven_at = ${NOW_SQL}
  from locked where people.id = locked.id
  returning people.id, people.guid_at_pod is not null as "isDisplaced"`

/**
 * Gives people the guid that they have on their own pod, if it is free or no signature of its holder was verified. That
 * holder keeps everything else and gets a new guid from this pod.
 */
export async function restoreOwnGuids(transaction: Knex.Transaction, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return
  try {
    await transaction.transaction(async (savepoint) => {
      await savepoint.raw(
        `select id from people where id = any(:ids) or guid in (${OWN_GUIDS_SQL}) order by id for update`,
        {
          ids: [...ids],
        },
      )
      await savepoint.raw(DISPLACED_UNSIGNED_HOLDERS_SQL, { ids: [...ids] })
      await savepoint.raw(RESTORED_GUIDS_SQL, { ids: [...ids] })
    })
  } catch (error) {
    // Another transaction has just used the guid. The next discovery tries again.
    if (!isUniqueViolation(error, 'people_guid_key')) throw error
  }
}

const OWN_GUIDS_SQL = `select guid_at_pod from people where id = any(:ids)`

const DISPLACED_UNSIGNED_HOLDERS_SQL = `
  update people as holder set guid = replace(gen_random_uuid()::text, '-', ''), guid_at_pod = holder.guid
  from people as claimant
  where claimant.id = any(:ids)
    and claimant.proven_at is not null
    and holder.guid = claimant.guid_at_pod
    and holder.proven_at is null
    and holder.pod_id is not null`

const RESTORED_GUIDS_SQL = `
  update people set guid = guid_at_pod, guid_at_pod = null
  where id in (
    select distinct on (guid_at_pod) id from people
    where id = any(:ids) and guid_at_pod is not null
      and not exists (select from people as holder where holder.guid = people.guid_at_pod)
    order by guid_at_pod, proven_at, id
  )`
