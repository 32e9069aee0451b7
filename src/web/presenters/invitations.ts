import type { InvitationRecord } from '../../persistence/accounts/invitation-records.js'

export function presentInvitation(invitation: InvitationRecord) {
  const { id, note, uses, used, accounts, createdBy } = invitation
  return {
    id,
    note,
    uses,
    used,
    accounts: [...accounts],
    until: invitation.expiresAt.toISOString(),
    recalled_at: invitation.recalledAt?.toISOString() ?? null,
    created_at: invitation.createdAt.toISOString(),
    created_by: createdBy,
  }
}
