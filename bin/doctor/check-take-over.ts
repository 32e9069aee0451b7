import type { Knex } from 'knex'
import { type CheckResult, checkWarning } from '../../src/domain/operations/check-result.js'
import { countOldPasswords, findTakeOver, wasPodOpened } from '../../src/persistence/operations/take-over-state.js'
import { DAY_MS } from '../../src/protocol/durations.js'

/** Days after which the operator should contact the owner of an account with a password of the old pod. */
const EXPECTED_DAYS = 365

/** Counts the accounts whose owners have not signed in since a take-over, so that their passwords still have the hashes of the old pod. */
export async function checkTakeOver(db: Knex, now: Date): Promise<readonly CheckResult[]> {
  const takeOver = await findTakeOver(db)
  if (takeOver === undefined || !wasPodOpened(takeOver)) return []
  const openedAt = new Date(String(takeOver.report['openedAt'] ?? takeOver.changedAt.toISOString()))
  if (now.getTime() - openedAt.getTime() < EXPECTED_DAYS * DAY_MS) return []
  const { count, names } = await countOldPasswords(db)
  if (count === 0) return []
  const accountList = `${names.join(', ')}${count > names.length ? ' …' : ''}`
  return [
    checkWarning(
      'take-over',
      `Accounts that were not used for a year still have the bcrypt hash of the old pod: ${count} (${accountList}). The pepper of the old pod is kept for them; "pod user password NAME --link" makes a link for a new password.`,
    ),
  ]
}
