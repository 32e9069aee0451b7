import { closeNow } from '../domain/accounts/closing/close-now.js'
import { queryRows } from '../persistence/database/database.js'
import { inRequestTransaction } from '../persistence/database/transactions.js'
import { User } from '../persistence/models/user.js'
import { emptyPeople } from '../persistence/people/empty-people.js'
import type { Services } from '../services/services.js'

/**
 * Closes the accounts whose closing the old pod had begun and not completed, as their owners would: the account deletion is sent when the
 * pod runs. People of other pods whose account deletion was not completed are emptied. Returns the number of both.
 */
export async function closeUnfinishedAccounts(
  services: Pick<Services, 'db' | 'requestContext' | 'jobs' | 'now'>,
): Promise<number> {
  const rows = await queryRows<UnfinishedClosing>(services.db, SELECT_UNFINISHED_CLOSINGS_SQL)
  for (const { personId, userId } of rows) {
    await inRequestTransaction(services, async (transaction) => {
      if (userId === null) return emptyPeople(transaction, [personId], services.now())
      const user = await User.query(transaction).findById(userId).withGraphFetched('person').throwIfNotFound()
      return closeNow(services, transaction, user)
    })
  }
  return rows.length
}

interface UnfinishedClosing {
  readonly personId: number
  /** Null: a person without account here. */
  readonly userId: number | null
}

const SELECT_UNFINISHED_CLOSINGS_SQL = `
  select distinct people.id::float as "personId", users.id::float as "userId"
  from take_over.account_deletions as deletions
  join people on people.id = deletions.person_id
  left join users on users.person_id = people.id
  where deletions.completed_at is null and users.closed_at is null order by 1`
