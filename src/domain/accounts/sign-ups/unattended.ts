import {
  endUnattendedRow,
  findLastStaffActivity,
  findUnattendedSince,
  insertUnattended,
} from '../../../persistence/accounts/unattended-sign-ups.js'
import { inTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import type { Pod } from '../../../pod/pod.js'
import { enqueueMails } from '../../mail/enqueue-mail.js'
import { type Actor, requirePower, SYSTEM_ACTOR } from '../../moderation/actor.js'
import { auditContext, requireReason } from '../../moderation/record-action.js'

const DAY_MS = 86_400_000
const TARGET = { type: 'sign_ups', guid: null, label: 'sign-ups' } as const

/** Whether every sign-up without an invitation needs a decision: by the setting, or because no moderator was active. */
export async function isApprovalOn({ db, config }: Pick<Pod, 'db' | 'config'>): Promise<boolean> {
  return config.signUpApproval || (mayBeUnattended({ config }) && (await findUnattendedSince(db)) !== null)
}

/** After UNATTENDED_DAYS without an active moderator, sign-ups of an open pod need a decision. */
function mayBeUnattended({ config }: Pick<Pod, 'config'>): boolean {
  return config.registrations === 'open' && config.unattendedDays > 0
}

/** Begins the approval of sign-ups if no moderator was active for UNATTENDED_DAYS, and writes to the admins once. */
export async function checkAttendance(pod: Pick<Pod, 'db' | 'config' | 'jobs' | 'now' | 'log'>): Promise<void> {
  if (!mayBeUnattended(pod) || pod.config.signUpApproval || (await findUnattendedSince(pod.db)) !== null) return
  const active = await findLastStaffActivity(pod.db)
  const { unattendedDays: days } = pod.config
  if (active === null || pod.now().getTime() - active.getTime() < days * DAY_MS) return
  const hasBegun = await inTransaction({ db: pod.db }, async (transaction) => {
    if (!(await insertUnattended(transaction, pod.now()))) return false
    const admins = await User.query(transaction).where({ role: 'admin', closedAt: null }).select('id')
    await enqueueMails(
      pod,
      transaction,
      admins.map(({ id }) => ({ kind: 'sign_ups_unattended', userId: id })),
    )
    const after = { approval: true, days }
    const entry = { ...auditContext(SYSTEM_ACTOR), action: 'sign_ups.unattended', target: TARGET, after }
    await appendAuditEntry(transaction, { ...entry, reason: `No moderator was active for ${days} days.` }, pod.now())
    return true
  })
  if (hasBegun) pod.log.warn({ days }, 'sign-ups need a decision: no moderator was active')
}

/** Lets people sign up again without a decision. Sign-ups that wait still need one. */
export async function endUnattended(
  pod: Pick<Pod, 'db' | 'now' | 'requestContext'>,
  actor: Actor,
  options: { readonly reason?: string | undefined },
): Promise<{ readonly changed: boolean }> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  return inTransaction(pod, async (transaction) => {
    if (!(await endUnattendedRow(transaction, pod.now()))) return { changed: false }
    const entry = { ...auditContext(actor), action: 'sign_ups.attended', target: TARGET, after: { approval: false } }
    await appendAuditEntry(transaction, { ...entry, reason }, pod.now())
    return { changed: true }
  })
}
