import type { Knex } from 'knex'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import type { Services } from '../../../services/services.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { Refusal } from '../../refusals.js'
import {
  changeAsOperator,
  type OperatorDependencies,
  recordChange,
  type UserWithPerson,
} from '../operator/change-as-operator.js'
import { beginClosing, cancelClosing } from './close-account.js'
import { closeUser } from './close-now.js'

/** Begins the closing of the own account, after the grace period of the setting. `typedName` is the username, as a confirmation. */
export async function closeOwnAccount(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'now'>,
  userId: number,
  typedName: string,
): Promise<Date> {
  return inRequestTransaction(services, async (transaction) => {
    const user = await User.query(transaction).findById(userId).withGraphFetched('person').forUpdate()
    if (!user?.person || user.closedAt !== null) throw new Refusal('user_closed', 'The account is closed.')
    if (typedName.trim().toLowerCase() !== user.username) {
      throw new Refusal('confirmation_needed', `Enter your username, ${user.username}, to close the account.`)
    }
    return user.closeAt ?? beginOwnClosing(services, transaction, user as UserWithPerson)
  })
}

async function beginOwnClosing(
  services: Pick<Services, 'config' | 'jobs' | 'now'>,
  transaction: Knex.Transaction,
  user: UserWithPerson,
): Promise<Date> {
  const closeAt = await beginClosing(services, transaction, user, { by: 'owner', shouldRetractContent: false })
  await enqueueAccountMail(services, transaction, 'account_closing', user.id)
  return closeAt
}

/** Keeps the own account. Everything is as before, the access of applications too. */
export async function cancelOwnClosing(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  userId: number,
): Promise<void> {
  await inRequestTransaction(services, (transaction) => cancelClosing(services, transaction, userId, 'owner'))
}

/** Closes an account by command, as its owner does: after the grace period. */
export async function closeByOperator(services: OperatorDependencies, username: string): Promise<Date> {
  return changeAsOperator(services, username, 'user.close', async (transaction, user) => {
    const closeAt = user.closeAt ?? (await beginOwnClosing(services, transaction, user))
    return { result: closeAt, after: { close_at: closeAt.toISOString() } }
  })
}

/** Closes an account by command at once. */
export async function closeNowByOperator(services: Services, username: string): Promise<void> {
  await closeUser(services, username, (transaction, user) =>
    recordChange(services, transaction, user, { action: 'user.close', after: { closed: true } }),
  )
}

/** Keeps an account whose closing an operator or its owner has begun. */
export async function cancelClosingByOperator(services: OperatorDependencies, username: string): Promise<void> {
  await changeAsOperator(services, username, 'user.keep', async (transaction, { id, closeAt }) => {
    if (closeAt === null) throw new Refusal('not_closing', `The account ${username} is not being closed.`)
    await cancelClosing(services, transaction, id, 'moderator')
    return { result: undefined, after: { close_at: null } }
  })
}
