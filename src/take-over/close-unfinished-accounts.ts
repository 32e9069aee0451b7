import { closeNow } from '../domain/accounts/closing/close-now.js'
import { queryRows } from '../persistence/database/database.js'
import { inRequestTransaction } from '../persistence/database/transactions.js'
import { User } from '../persistence/models/user.js'
import type { Services } from '../services/services.js'

/**
 * Closes the accounts whose closing the old pod had begun and not completed, as their owners would: the account deletion is sent when the
 * pod runs. Returns their number.
 */
export async function closeUnfinishedAccounts(
  services: Pick<Services, 'db' | 'requestContext' | 'jobs' | 'now'>,
): Promise<number> {
  const rows = await queryRows<{ readonly id: number }>(
    services.db,
    `
    select distinct users.id::float as id from take_over.account_deletions as deletions
    join take_over.map_people as map on map.id = deletions.person_id
    join users on users.id = map.user_id and users.closed_at is null
    where deletions.completed_at is null order by 1`,
  )
  for (const { id } of rows) {
    await inRequestTransaction(services, async (transaction) => {
      const user = await User.query(transaction).findById(id).withGraphFetched('person').throwIfNotFound()
      await closeNow(services, transaction, user)
    })
  }
  return rows.length
}
