import type { Knex } from 'knex'
import { User } from '../../persistence/models/user.js'
import { findLocksInForce, type LockInForce, openUnlockedUsers } from '../../persistence/moderation/locks.js'
import type { Services } from '../../services/services.js'
import { suspendAccess } from '../accounts/accounts.js'

/**
 * Locks accounts without a role that are open, or that another action locks and may open again. Returns the ids of their users. Locks
 * without an action stay as they are, because no undo ends them.
 */
export async function lockUsersWithoutRole(
  { now }: Pick<Services, 'now'>,
  transaction: Knex.Transaction,
  people: readonly { readonly id: number; readonly address: string }[],
): Promise<readonly number[]> {
  const addressOf = new Map(people.map(({ id, address }) => [id, address]))
  const users = await User.query(transaction)
    .whereIn('personId', [...addressOf.keys()])
    .where({ role: null, closedAt: null })
    .orderBy('id')
    .select('id', 'personId', 'lockedAt')
    .forUpdate()
  const lockedUsers = users.filter(({ lockedAt }) => lockedAt !== null)
  const locks = await findLocksInForce(
    transaction,
    lockedUsers.map(({ id }) => id),
  )
  const isKept = (user: User) => isLockedWithoutAction(user, ofUser(locks, user.id))
  const openUsers = users.filter(({ lockedAt }) => lockedAt === null)
  for (const { personId } of openUsers) await suspendAccess(transaction, addressOf.get(personId) ?? '')
  await User.query(transaction)
    .whereIn(
      'id',
      openUsers.map(({ id }) => id),
    )
    .patch({ lockedAt: now() })
  return users.filter((user) => !isKept(user)).map(({ id }) => id)
}

function ofUser(locks: readonly LockInForce[], id: number): readonly LockInForce[] {
  return locks.filter(({ userId }) => userId === id)
}

/** Whether the account stays locked when all these locks are undone: it was locked before them, or by none of them. */
export function isLockedWithoutAction(
  { lockedAt }: Pick<User, 'lockedAt'>,
  locksInForce: readonly LockInForce[],
): boolean {
  return lockedAt !== null && (locksInForce.length === 0 || locksInForce.some(({ wasLocked }) => wasLocked))
}

/** Opens the accounts on which no other lock is in force. The rows are locked first, so that a new lock is not missed. */
export async function unlockUsers(transaction: Knex.Transaction, userIds: readonly number[]): Promise<void> {
  if (userIds.length === 0) return
  await User.query(transaction)
    .whereIn('id', [...userIds])
    .orderBy('id')
    .select('id')
    .forUpdate()
  await openUnlockedUsers(transaction, userIds)
}
