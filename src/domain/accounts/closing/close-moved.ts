import type { Knex } from 'knex'
import type { Person } from '../../../persistence/models/person.js'
import { User } from '../../../persistence/models/user.js'
import { emptyPeople } from '../../../persistence/people/empty-people.js'
import type { Services } from '../../../services/services.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { endAllAccess } from '../accounts.js'

/**
 * Closes a person whose references have moved to another person. A local account is locked, its sessions and tokens end, and its owner
 * gets a mail. Key pair and username stay, because old messages refer to them; e-mail address and password stay for a while.
 */
export async function closeMovedPerson(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  { id, podId, address }: Pick<Person, 'id' | 'podId' | 'address'>,
  now: Date,
): Promise<void> {
  await emptyPeople(transaction, [id], now, { keepsEmail: podId === null })
  if (podId !== null) return
  const user = await User.query(transaction).findOne({ personId: id })
  if (user === undefined) return
  await user.$query(transaction).patch({ lockedAt: user.lockedAt ?? now })
  await endAllAccess(transaction, { userId: user.id, address })
  await enqueueAccountMail(services, transaction, 'account_moved', user.id)
}
