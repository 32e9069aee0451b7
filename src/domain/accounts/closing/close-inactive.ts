import {
  type EndingTerms,
  findEndingAccounts,
  type InactivityTerms,
  markUnusedAccounts,
  unmarkUnsentWarnings,
} from '../../../persistence/accounts/inactive-accounts.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import type { Services } from '../../../services/services.js'
import { enqueueAccountMail, enqueueMails } from '../../mail/enqueue-mail.js'
import { MAIL_LIMITS } from '../../mail/limits.js'
import { SYSTEM_ACTOR } from '../../moderation/actor.js'
import { auditContext } from '../../moderation/record-action.js'
import { Refusal } from '../../refusals.js'
import { INACTIVITY_LIMITS } from '../limits.js'
import type { UserWithPerson } from '../operator/change-as-operator.js'
import { beginClosing } from './close-account.js'

type InactivityDependencies = Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'log' | 'now'>

/**
 * Warns the owners of accounts that are unused for INACTIVE_ACCOUNT_DAYS less 30 days. Begins to close accounts that are unused for
 * INACTIVE_ACCOUNT_DAYS, at the earliest 30 days after the warning. Each run has a limit; the next one continues.
 */
export async function closeInactiveAccounts(services: InactivityDependencies): Promise<void> {
  const { inactiveAccountDays: days, mail, podminAccount } = services.config
  if (days === 0 || mail === undefined) return
  const { warnedDays, accountsPerRun } = INACTIVITY_LIMITS
  const now = services.now()
  const terms: InactivityTerms = {
    kept: podminAccount ?? null,
    now,
    limit: accountsPerRun,
    warnAfter: days - warnedDays,
    closeAfter: days,
  }
  await unmarkUnsentWarnings(services.db, {
    now,
    kind: 'account_unused',
    givenUpDays: MAIL_LIMITS.waitingDays + 1,
    listedDays: MAIL_LIMITS.listedDays - 1,
  })
  const warnedAccounts = await warnUnused(services, terms)
  const closingAccounts = await closeEnding(services, { ...terms, warnedDays })
  if (warnedAccounts > 0) services.log.info({ accounts: warnedAccounts }, 'inactive account owners warned')
  if (closingAccounts > 0) services.log.info({ accounts: closingAccounts }, 'inactive accounts closing')
}

async function warnUnused(services: InactivityDependencies, terms: InactivityTerms): Promise<number> {
  return inRequestTransaction(services, async (transaction) => {
    const userIds = await markUnusedAccounts(transaction, terms)
    await enqueueMails(
      services,
      transaction,
      userIds.map((userId) => ({ kind: 'account_unused', userId })),
    )
    return userIds.length
  })
}

async function closeEnding(services: InactivityDependencies, terms: EndingTerms): Promise<number> {
  let closingAccounts = 0
  for (const username of await findEndingAccounts(services.db, terms)) {
    if (await closeUnused(services, username, terms)) closingAccounts += 1
  }
  return closingAccounts
}

/** False: the account was used in the meantime, or must stay because it is the last one of an admin. */
async function closeUnused(services: InactivityDependencies, username: string, terms: EndingTerms): Promise<boolean> {
  try {
    return await inRequestTransaction(services, async (transaction) => {
      const user = await User.byUsername(transaction, username).forUpdate()
      const isStillUnused = (await findEndingAccounts(transaction, terms, username)).length > 0
      if (user?.person === undefined || !isStillUnused) return false
      await beginClosing(services, transaction, user as UserWithPerson, {
        by: 'inactivity',
        shouldRetractContent: false,
      })
      await enqueueAccountMail(services, transaction, 'account_unused_closing', user.id)
      const target = { type: 'person', guid: user.person.guid, label: username }
      const reason = `The account was not used for ${terms.closeAfter} days.`
      const entry = { ...auditContext(SYSTEM_ACTOR), action: 'account.closing', target, reason }
      await appendAuditEntry(transaction, entry, services.now())
      return true
    })
  } catch (error) {
    if (error instanceof Refusal) return false
    throw error
  }
}
