import type { Knex } from 'knex'
import { inTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import type { Pod } from '../../../pod/pod.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { Refusal } from '../../refusals.js'
import { closeUser } from '../accounts.js'
import {
  changeAsOperator,
  type OperatorPod,
  recordChange,
  type UserWithPerson,
} from '../operator/change-as-operator.js'
import { beginClosing, cancelClosing } from './close-account.js'

/** Begins the closing of the own account, after the grace period of the setting. `typed` is the username, as a confirmation. */
export async function closeOwnAccount(
  pod: Pick<Pod, 'db' | 'now' | 'jobs' | 'config' | 'requestContext'>,
  userId: number,
  typed: string,
): Promise<Date> {
  return inTransaction(pod, async (transaction) => {
    const user = await User.query(transaction).findById(userId).withGraphFetched('person').forUpdate()
    if (!user?.person || user.closedAt !== null) throw new Refusal('user_closed', 'The account is closed.')
    if (typed.trim().toLowerCase() !== user.username) {
      throw new Refusal('confirmation_needed', `Enter your username, ${user.username}, to close the account.`)
    }
    return user.closeAt ?? beginOwnClosing(pod, transaction, user as UserWithPerson)
  })
}

async function beginOwnClosing(
  pod: Pick<Pod, 'now' | 'jobs' | 'config'>,
  transaction: Knex.Transaction,
  user: UserWithPerson,
): Promise<Date> {
  const closeAt = await beginClosing(pod, transaction, user, { by: 'owner', shouldRetractContent: false })
  await enqueueAccountMail(pod, transaction, 'account_closing', user.id)
  return closeAt
}

/** Keeps the own account. Everything is as before, the access of applications too. */
export async function cancelOwnClosing(pod: Pick<Pod, 'db' | 'now' | 'requestContext'>, userId: number): Promise<void> {
  await inTransaction(pod, (transaction) => cancelClosing(pod, transaction, userId, 'owner'))
}

/** Closes an account by command, as its owner does: after the grace period. */
export async function closeByOperator(pod: OperatorPod, username: string): Promise<Date> {
  return changeAsOperator(pod, username, 'user.close', async (transaction, user) => {
    const closeAt = user.closeAt ?? (await beginOwnClosing(pod, transaction, user))
    return { result: closeAt, after: { close_at: closeAt.toISOString() } }
  })
}

/** Closes an account by command at once. */
export async function closeNowByOperator(pod: Pod, username: string): Promise<void> {
  await closeUser(pod, username, (transaction, user) =>
    recordChange(pod, transaction, user, { action: 'user.close', after: { closed: true } }),
  )
}

/** Keeps an account whose closing an operator or its owner has begun. */
export async function cancelClosingByOperator(pod: OperatorPod, username: string): Promise<void> {
  await changeAsOperator(pod, username, 'user.keep', async (transaction, { id, closeAt }) => {
    if (closeAt === null) throw new Refusal('not_closing', `The account ${username} is not being closed.`)
    await cancelClosing(pod, transaction, id, 'moderator')
    return { result: undefined, after: { close_at: null } }
  })
}
