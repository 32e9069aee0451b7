import type { Knex } from 'knex'
import { deleteSessions } from '../../../persistence/accounts/oidc-records.js'
import { endExportsOfUser } from '../../../persistence/archives/exports.js'
import { type User, UserSecrets } from '../../../persistence/models/user.js'
import { emptyPeople } from '../../../persistence/people/empty-people.js'
import type { Services } from '../../../services/services.js'
import { lockAdmins, requireOtherAdmin } from '../../moderation/actor.js'
import { storeMessage } from '../../outbound/outgoing-messages.js'
import { changeOpenUser, deleteAuthorizations, personOf, requireNotPodmin } from '../accounts.js'
import { removeFactors } from '../factors/second-factor.js'

/**
 * Closes an account at once: sign-in and tokens stop working, its content is deleted here, and an account deletion is sent to the
 * pods that have data of it. The username stays reserved.
 */
export async function closeUser(
  services: Services,
  username: string,
  inSameTransaction: (transaction: Knex.Transaction, user: User) => Promise<void> = async () => undefined,
): Promise<void> {
  await changeOpenUser(services, username, async (transaction, user) => {
    requireNotPodmin(services, user)
    requireOtherAdmin(await lockAdmins(transaction), user.id)
    await closeNow(services, transaction, user)
    await inSameTransaction(transaction, user)
  })
}

/** Closes an account in a transaction that has locked it and checked that it may be closed. */
export async function closeNow(
  services: Pick<Services, 'jobs' | 'now'>,
  transaction: Knex.Transaction,
  user: User,
): Promise<void> {
  await enqueueAccountDeletion(services, transaction, user)
  await closeWithoutSending(transaction, user, services.now())
}

/** Closes an account of which other pods know already. */
export async function closeWithoutSending(transaction: Knex.Transaction, user: User, closedAt: Date): Promise<void> {
  await user.$query(transaction).patch({ closedAt, role: null })
  await UserSecrets.query(transaction).findById(user.id).patch({ passwordHash: null })
  await deleteAuthorizations(transaction, user.id)
  await deleteSessions(transaction, personOf(user).address)
  await endExportsOfUser(transaction, user.id)
  await removeFactors(transaction, user.id)
  await transaction('browser_sessions').where({ userId: user.id }).delete()
  await emptyPeople(transaction, [user.personId], closedAt)
}

/** Sends the account deletion to contacts and resharers. It must run before the deletion, which removes both relations. */
async function enqueueAccountDeletion(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  user: User,
): Promise<void> {
  const { address, guid } = personOf(user)
  const resharers: readonly { readonly authorId: number }[] = await transaction('posts as reshares')
    .join('posts as roots', 'roots.id', 'reshares.rootId')
    .where({ 'roots.authorId': user.personId })
    .distinct('reshares.authorId')
    .orderBy('reshares.authorId')
  await storeMessage(
    services,
    transaction,
    {
      record: 'account_deletion',
      guid,
      verb: 'create',
      senderId: user.personId,
      public: true,
      entity: { type: 'account_deletion', author: address },
    },
    { kind: 'contacts', userId: user.id, alsoPersonIds: resharers.map(({ authorId }) => authorId) },
  )
}
