import type { UndecidedSignUp } from '../../persistence/accounts/pending-sign-ups.js'

export function presentSignUp(row: UndecidedSignUp) {
  const { id, username, email, language, reason, network, othersOfNetwork } = row
  return {
    id,
    username,
    email,
    language,
    reason,
    network,
    email_confirmed: row.confirmedAt !== null,
    invitation_id: row.invitationId,
    rules: [...row.rules],
    others_of_network: othersOfNetwork,
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt.toISOString(),
  }
}
