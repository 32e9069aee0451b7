import { hash } from '@node-rs/argon2'
import { deleteUnusedCodes } from '../../../persistence/accounts/issued-tokens.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { User, UserSecrets } from '../../../persistence/models/user.js'
import type { Services } from '../../../services/services.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { ARGON2, endMailLinks, requirePassword } from '../accounts.js'
import { deletePendingTotp, type FactorOwner } from '../factors/second-factor.js'
import { endApplications, endOtherSessions } from '../sessions.js'

/** Sets a new password for a signed-in user. The other sessions end, and the access of applications if wanted. */
export async function changePassword(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs'>,
  { userId, address, sessionUid }: Omit<FactorOwner, 'role'>,
  { password, shouldEndApplications }: { readonly password: string; readonly shouldEndApplications: boolean },
): Promise<void> {
  requirePassword(password, await User.query(services.db).findById(userId).throwIfNotFound())
  const passwordHash = await hash(password, ARGON2)
  await inRequestTransaction(services, async (transaction) => {
    await UserSecrets.query(transaction).findById(userId).patch({ passwordHash })
    await endMailLinks(transaction, userId)
    await deletePendingTotp(transaction, userId)
    await endOtherSessions(transaction, { address, sessionUid })
    await deleteUnusedCodes(transaction, userId)
    if (shouldEndApplications) await endApplications(transaction, userId)
    await enqueueAccountMail(services, transaction, 'password_changed', userId)
  })
}
