import {
  type EndingTerms,
  findEndingAccounts,
  type InactivityTerms,
  markUnusedAccounts,
  unmarkUnsentWarnings,
} from '../../../persistence/accounts/inactive-accounts.js'
import { inTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import type { Pod } from '../../../pod/pod.js'
import { enqueueAccountMail, enqueueMails } from '../../mail/enqueue-mail.js'
import { MAIL_LIMITS } from '../../mail/limits.js'
import { SYSTEM_ACTOR } from '../../moderation/actor.js'
import { auditContext } from '../../moderation/record-action.js'
import { Refusal } from '../../refusals.js'
import { INACTIVITY_LIMITS } from '../limits.js'
import type { UserWithPerson } from '../operator/change-as-operator.js'
import { beginClosing } from './close-account.js'

type InactivityPod = Pick<Pod, 'db' | 'config' | 'jobs' | 'now' | 'log' | 'requestContext'>

/**
 * Warns the owners of accounts that nobody has used for INACTIVE_ACCOUNT_DAYS less 30 days, and begins to close those that nobody has
 * used for INACTIVE_ACCOUNT_DAYS, at the earliest 30 days after the warning. Each run has a limit; the next one continues.
 */
export async function closeInactiveAccounts(pod: InactivityPod): Promise<void> {
  const { inactiveAccountDays: days, mail, podminAccount } = pod.config
  if (days === 0 || mail === undefined) return
  const { warnedDays, accountsAtOnce } = INACTIVITY_LIMITS
  const now = pod.now()
  const terms: InactivityTerms = {
    ...{ kept: podminAccount ?? null, now, limit: accountsAtOnce },
    ...{ warnAfter: days - warnedDays, closeAfter: days },
  }
  await unmarkUnsentWarnings(pod.db, {
    ...{ now, kind: 'account_unused' },
    givenUpDays: MAIL_LIMITS.waitingDays + 1,
    listedDays: MAIL_LIMITS.listedDays - 1,
  })
  const warned = await warnUnused(pod, terms)
  const closing = await closeEnding(pod, { ...terms, warnedDays })
  if (warned + closing > 0)
    pod.log.info({ warned, closing }, 'owners of unused accounts warned, unused accounts closing')
}

async function warnUnused(pod: InactivityPod, terms: InactivityTerms): Promise<number> {
  return inTransaction(pod, async (transaction) => {
    const userIds = await markUnusedAccounts(transaction, terms)
    await enqueueMails(
      pod,
      transaction,
      userIds.map((userId) => ({ kind: 'account_unused', userId })),
    )
    return userIds.length
  })
}

async function closeEnding(pod: InactivityPod, terms: EndingTerms): Promise<number> {
  let closing = 0
  for (const username of await findEndingAccounts(pod.db, terms)) {
    if (await closeUnused(pod, username, terms)) closing += 1
  }
  return closing
}

/** False: the account was used meanwhile, or must stay because it is the last one of an admin. */
async function closeUnused(pod: InactivityPod, username: string, terms: EndingTerms): Promise<boolean> {
  try {
    return await inTransaction(pod, async (transaction) => {
      const user = await User.byUsername(transaction, username).forUpdate()
      const isStillUnused = (await findEndingAccounts(transaction, terms, username)).length > 0
      if (user?.person === undefined || !isStillUnused) return false
      await beginClosing(pod, transaction, user as UserWithPerson, { by: 'inactivity', shouldRetractContent: false })
      await enqueueAccountMail(pod, transaction, 'account_unused_closing', user.id)
      const target = { type: 'person', guid: user.person.guid, label: username }
      const reason = `Nobody has used the account for ${terms.closeAfter} days.`
      const entry = { ...auditContext(SYSTEM_ACTOR), action: 'account.closing', target, reason }
      await appendAuditEntry(transaction, entry, pod.now())
      return true
    })
  } catch (error) {
    if (error instanceof Refusal) return false
    throw error
  }
}
