import {
  closeUnattendedPeriod,
  findLastStaffActivity,
  findUnattendedSince,
  insertUnattendedPeriod,
} from '../../../persistence/accounts/unattended-sign-ups.js'
import { inRequestTransaction, inTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { enqueueMails } from '../../mail/enqueue-mail.js'
import { type Actor, requirePower, SYSTEM_ACTOR } from '../../moderation/actor.js'
import { auditContext, requireReason } from '../../moderation/record-action.js'

const TARGET = { type: 'sign_ups', guid: null, label: 'sign-ups' } as const

/** Whether every sign-up without an invitation needs a decision: by the setting, or because no moderator or admin was active. */
export async function isApprovalOn({ db, config }: Pick<Services, 'config' | 'db'>): Promise<boolean> {
  return config.signUpApproval || (mayBeUnattended({ config }) && (await findUnattendedSince(db)) !== null)
}

/** After UNATTENDED_DAYS without an active moderator or admin, sign-ups of a pod with open registration need a decision. */
function mayBeUnattended({ config }: Pick<Services, 'config'>): boolean {
  return config.registrations === 'open' && config.unattendedDays > 0
}

/** Begins the approval of sign-ups if no moderator or admin was active for UNATTENDED_DAYS, and writes to the admins once. */
export async function checkAttendance(
  services: Pick<Services, 'config' | 'db' | 'jobs' | 'log' | 'now'>,
): Promise<void> {
  if (!mayBeUnattended(services) || services.config.signUpApproval || (await findUnattendedSince(services.db)) !== null)
    return
  const active = await findLastStaffActivity(services.db)
  const { unattendedDays: days } = services.config
  if (active === null || services.now().getTime() - active.getTime() < days * DAY_MS) return
  const hasBegun = await inTransaction(services.db, async (transaction) => {
    if (!(await insertUnattendedPeriod(transaction, services.now()))) return false
    const admins = await User.query(transaction).where({ role: 'admin', closedAt: null }).select('id')
    await enqueueMails(
      services,
      transaction,
      admins.map(({ id }) => ({ kind: 'sign_ups_unattended', userId: id })),
    )
    const after = { approval: true, days }
    const entry = { ...auditContext(SYSTEM_ACTOR), action: 'sign_ups.unattended', target: TARGET, after }
    await appendAuditEntry(
      transaction,
      { ...entry, reason: `No moderator was active for ${days} days.` },
      services.now(),
    )
    return true
  })
  if (hasBegun) services.log.warn({ days }, 'sign-ups need a decision: no moderator was active')
}

/** Lets people sign up again without a decision. Sign-ups that wait still need one. */
export async function endUnattendedPeriod(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  options: { readonly reason?: string | undefined },
): Promise<{ readonly changed: boolean }> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  return inRequestTransaction(services, async (transaction) => {
    if (!(await closeUnattendedPeriod(transaction, services.now()))) return { changed: false }
    const entry = { ...auditContext(actor), action: 'sign_ups.attended', target: TARGET, after: { approval: false } }
    await appendAuditEntry(transaction, { ...entry, reason }, services.now())
    return { changed: true }
  })
}
