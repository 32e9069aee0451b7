import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** Returns those of the reshares of which the author of the root was never notified. */
export async function findSilentReshares(
  transaction: Knex.Transaction,
  reshareIds: readonly number[],
): Promise<readonly number[]> {
  if (reshareIds.length === 0) return []
  const rows = await queryRows<{ readonly id: number }>(transaction, SILENT_RESHARES_SQL, [[...reshareIds]])
  return rows.map(({ id }) => id)
}

const SILENT_RESHARES_SQL = `
  select reshares.id
  from posts as reshares
  join posts as roots on roots.id = reshares.root_id
  join users on users.person_id = roots.author_id
  where reshares.id = any(?) and not exists (
    select from notifications
    join notification_actors on notification_actors.notification_id = notifications.id
    where notifications.user_id = users.id and notifications.type = 'reshared' and notifications.post_id = roots.id
      and notification_actors.person_id = reshares.author_id
  )`
