import type { Knex } from 'knex'
import { User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'
import { suspendAccess } from '../accounts/accounts.js'

/** Locks accounts without a role that are open and not locked yet. Returns the ids of their users. */
export async function lockUsersWithoutRole(
  { now }: Pick<Services, 'now'>,
  transaction: Knex.Transaction,
  people: readonly { readonly id: number; readonly address: string }[],
): Promise<readonly number[]> {
  const addressOf = new Map(people.map(({ id, address }) => [id, address]))
  const users = await User.query(transaction)
    .whereIn('personId', [...addressOf.keys()])
    .where({ role: null, lockedAt: null, closedAt: null })
    .orderBy('id')
    .select('id', 'personId')
    .forUpdate()
  for (const { personId } of users) await suspendAccess(transaction, addressOf.get(personId) ?? '')
  const ids = users.map(({ id }) => id)
  await User.query(transaction).whereIn('id', ids).patch({ lockedAt: now() })
  return ids
}

export async function unlockUsers(transaction: Knex.Transaction, userIds: readonly number[]): Promise<void> {
  if (userIds.length > 0)
    await User.query(transaction)
      .whereIn('id', [...userIds])
      .patch({ lockedAt: null })
}
