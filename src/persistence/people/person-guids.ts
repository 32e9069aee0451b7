import type { Knex } from 'knex'
import { isUniqueViolation } from '../database/errors.js'

/**
 * Notes that these people have signed something, and gives them the guid of their own pod where a person has it who has never
 * signed anything.
 */
export async function markPeopleProven(transaction: Knex.Transaction, addresses: readonly string[]): Promise<void> {
  if (addresses.length === 0) return
  const { rows }: { rows: readonly { id: number; isDisplaced: boolean }[] } = await transaction.raw(proven, [
    [...addresses],
  ])
  await restoreOwnGuids(
    transaction,
    rows.filter(({ isDisplaced }) => isDisplaced).map(({ id }) => id),
  )
}

/** In one order, and without holding up what else refers to the people. */
const proven = `
  with locked as (
    select id from people
    where address = any(?) and proven_at is null and pod_id is not null
    order by id for no key update
  )
  update people set proven_at = date_trunc('milliseconds', now())
  from locked where people.id = locked.id
  returning people.id, people.guid_at_pod is not null as "isDisplaced"`

/**
 * Gives people the guid that they have on their own pod, if no other person has it, or one who has never signed anything. That
 * person keeps everything but the guid, and gets one that this pod makes.
 */
export async function restoreOwnGuids(transaction: Knex.Transaction, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return
  try {
    await transaction.transaction(async (savepoint) => {
      await savepoint.raw(`select id from people where id = any(:ids) or guid in (${wanted}) order by id for update`, {
        ids: [...ids],
      })
      await savepoint.raw(displaced, { ids: [...ids] })
      await savepoint.raw(restored, { ids: [...ids] })
    })
  } catch (error) {
    // Another person has got the guid at this moment; the next discovery tries again.
    if (!isUniqueViolation(error, 'people_guid_key')) throw error
  }
}

const wanted = `select guid_at_pod from people where id = any(:ids)`

const displaced = `
  update people as holder set guid = replace(gen_random_uuid()::text, '-', ''), guid_at_pod = holder.guid
  from people as claimant
  where claimant.id = any(:ids)
    and claimant.proven_at is not null
    and holder.guid = claimant.guid_at_pod
    and holder.proven_at is null
    and holder.pod_id is not null`

const restored = `
  update people set guid = guid_at_pod, guid_at_pod = null
  where id in (
    select distinct on (guid_at_pod) id from people
    where id = any(:ids) and guid_at_pod is not null
      and not exists (select from people as holder where holder.guid = people.guid_at_pod)
    order by guid_at_pod, proven_at, id
  )`
