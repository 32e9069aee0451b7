import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import type { EntityKey } from './entity-key.js'

/**
 * Takes the locks of all entities that a transaction stores or waits for, in one order. The storing and the waiting transaction both
 * do, so that a message cannot miss its entity. Parents are locked in shared mode: several transactions may add to them. The same
 * statement looks for pods and people that were blocked in the last minute: a batch may have read its senders before.
 */
export async function lockEntityKeys(
  transaction: Knex.Transaction,
  entityKeys: readonly EntityKey[],
  sharedKeys: readonly EntityKey[] = [],
): Promise<{ readonly hasNewBlocks: boolean }> {
  if (entityKeys.length + sharedKeys.length === 0) return { hasNewBlocks: false }
  const [row] = await queryPrepared<{ readonly hasNewBlocks: boolean }>(transaction, 'lock-entity-keys', LOCKS_SQL, [
    entityKeys,
    sharedKeys,
  ])
  return row ?? { hasNewBlocks: false }
}

/** Limits the locks of people: a conversation may name 255 unknown ones, and the lock table of a server has a few thousand entries. */
const LOCKS_OF_PEOPLE = 64

const LOCK_KEY_SQL = `case
  when starts_with(entity_key, 'person:') then hashtextextended(entity_key, 0) & ${LOCKS_OF_PEOPLE - 1}
  else hashtextextended(entity_key, 0)
end`

/** Takes each lock once, in its stronger mode: upgrading a shared lock would deadlock with a transaction that does the same. */
const LOCKS_SQL = `
  select count(case when exclusive then pg_advisory_xact_lock(key) else pg_advisory_xact_lock_shared(key) end),
    exists (select from pods where blocked_at > now() - interval '1 minute')
      or exists (select from pod_rules where state = 'blocked' and updated_at > now() - interval '1 minute')
      or exists (select from person_restrictions where kind = 'block' and created_at > now() - interval '1 minute') as "hasNewBlocks"
  from (
    select ${LOCK_KEY_SQL} as key, bool_or(exclusive) as exclusive
    from (
      select entity_key, true as exclusive from unnest($1::text[]) as entity_key
      union all
      select entity_key, false from unnest($2::text[]) as entity_key
    ) as requested_locks
    group by key order by key
  ) as ordered_locks`
