import type { Knex } from 'knex'
import { isUniqueViolation } from '../database/errors.js'

/**
 * Records that a signature of these people was verified for the first time. If a person without a verified signature holds the guid
 * that one of them has on their own pod, they swap guids.
 */
export async function recordFirstSignatures(
  transaction: Knex.Transaction,
  addresses: readonly string[],
): Promise<void> {
  if (addresses.length === 0) return
  const { rows }: { rows: readonly { id: number; isDisplaced: boolean }[] } = await transaction.raw(setFirstSignature, [
    [...addresses],
  ])
  await restoreOwnGuids(
    transaction,
    rows.filter(({ isDisplaced }) => isDisplaced).map(({ id }) => id),
  )
}

/** Locks in id order against deadlocks, and with a lock that does not block new references to the people. */
const setFirstSignature = `
  with locked as (
    select id from people
    where address = any(?) and proven_at is null and pod_id is not null
    order by id for no key update
  )
  update people set proven_at = date_trunc('milliseconds', now())
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
        `select id from people where id = any(:ids) or guid in (${selectOwnGuids}) order by id for update`,
        {
          ids: [...ids],
        },
      )
      await savepoint.raw(displaceUnsignedHolders, { ids: [...ids] })
      await savepoint.raw(restoreGuids, { ids: [...ids] })
    })
  } catch (error) {
    // Another transaction has just used the guid. The next discovery tries again.
    if (!isUniqueViolation(error, 'people_guid_key')) throw error
  }
}

const selectOwnGuids = `select guid_at_pod from people where id = any(:ids)`

const displaceUnsignedHolders = `
  update people as holder set guid = replace(gen_random_uuid()::text, '-', ''), guid_at_pod = holder.guid
  from people as claimant
  where claimant.id = any(:ids)
    and claimant.proven_at is not null
    and holder.guid = claimant.guid_at_pod
    and holder.proven_at is null
    and holder.pod_id is not null`

const restoreGuids = `
  update people set guid = guid_at_pod, guid_at_pod = null
  where id in (
    select distinct on (guid_at_pod) id from people
    where id = any(:ids) and guid_at_pod is not null
      and not exists (select from people as holder where holder.guid = people.guid_at_pod)
    order by guid_at_pod, proven_at, id
  )`
