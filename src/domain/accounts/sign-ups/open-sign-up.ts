import type { Knex } from 'knex'
import {
  deleteSignUpAddress,
  listUndecidedSignUps,
  type PendingSignUp,
  pendingSignUps,
  type UndecidedSignUp,
} from '../../../persistence/accounts/pending-sign-ups.js'
import { isUniqueViolation } from '../../../persistence/database/errors.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { databaseTimeIn, NOW_SQL } from '../../../persistence/sql/database-time.js'
import type { IdPage, ListPage } from '../../../persistence/sql/id-page.js'
import type { Services } from '../../../services/services.js'
import { enqueueAccountMail, enqueueMails } from '../../mail/enqueue-mail.js'
import { mailboxMac } from '../../mail/mailboxes.js'
import { type Actor, requirePower } from '../../moderation/actor.js'
import { requireReason } from '../../moderation/record-action.js'
import { recordOperatorChange } from '../../operations/record-operator-change.js'
import { Refusal } from '../../refusals.js'
import { type Account, createAccount } from '../accounts.js'
import { useInvitation } from '../invitations.js'
import { ACCOUNT_LIMITS } from '../limits.js'
import { tokenInvalid } from '../passwords/password-reset.js'
import { hashToken } from '../token-hash.js'

export type ConfirmedSignUp =
  | { readonly account: Account; readonly requestUid: string | null }
  /** The sign-up waits for a moderator. */
  | { readonly account?: undefined }

/** Confirms the mailbox of a pending sign-up; opens the account if no decision is missing. */
export async function confirmSignUp(services: Services, token: string): Promise<ConfirmedSignUp> {
  const pendingSignUp = await inRequestTransaction(services, async (transaction) => {
    const confirmedSignUp = await pendingSignUps(transaction)
      .whereRaw('token_hash = ?', [hashToken(token)])
      .forUpdate()
      .first()
    if (confirmedSignUp === undefined) throw tokenInvalid()
    const isWaiting = confirmedSignUp.needsApproval && confirmedSignUp.decidedAt === null
    await transaction('pending_sign_ups')
      .where({ id: confirmedSignUp.id })
      .update({
        confirmedAt: transaction.raw(NOW_SQL),
        // The link has been used. From now on the sign-up waits for the decision of a moderator.
        ...(isWaiting && {
          tokenHash: null,
          expiresAt: databaseTimeIn(transaction, { days: ACCOUNT_LIMITS.undecidedDays }),
        }),
      })
    return isWaiting ? undefined : confirmedSignUp
  })
  if (pendingSignUp === undefined) return {}
  try {
    return { account: await openAccount(services, pendingSignUp.id), requestUid: pendingSignUp.requestUid }
  } catch (error) {
    throw isUniqueViolation(error, 'users_email') ? tokenInvalid() : error
  }
}

/** Creates the person, keys and aspects, uses the invitation, and ends the pending sign-up, in one transaction. */
async function openAccount(
  services: Services,
  id: number,
  inSameTransaction: (transaction: Knex.Transaction, userId: number) => Promise<void> = async () => undefined,
): Promise<Account> {
  const signUp = await pendingSignUps(services.db).where({ id }).first()
  if (signUp === undefined || signUp.username === null || signUp.passwordHash === null) throw signUpMissing()
  if (signUp.needsConfirmation && signUp.confirmedAt === null) throw signUpMissing()
  const { username, passwordHash, language, email, invitationId, network, termsVersion } = signUp
  return createAccount(services, { username, passwordHash, language, pendingId: id }, async (transaction, user) => {
    const deletedCount = await transaction('pending_sign_ups').where({ id }).delete()
    if (deletedCount === 0) throw signUpMissing()
    const isConfirmed = email !== null && signUp.confirmedAt !== null
    await user.$query(transaction).patch({
      signedUpAt: services.now(),
      signUpIp: await deleteSignUpAddress(transaction, id),
      signUpNetwork: network,
      ...(termsVersion !== null && { termsVersion, termsAcceptedAt: signUp.createdAt }),
      ...(isConfirmed && { email, emailConfirmedAt: services.now() }),
      ...(email !== null && !isConfirmed && { unconfirmedEmail: email }),
    })
    if (invitationId !== null) await useInvitation(transaction, user.id, { id: invitationId })
    if (email !== null && !isConfirmed)
      await enqueueMails(services, transaction, [
        { kind: 'confirm_email', userId: user.id, mailbox: mailboxMac(services, email) },
      ])
    await inSameTransaction(transaction, user.id)
  })
}

/** Approves a sign-up. The account opens at once, or with the confirmation of its mailbox. */
export async function approveSignUp(
  services: Services,
  actor: Actor,
  id: number,
  { reason }: { readonly reason?: string | undefined },
): Promise<{ readonly opened: boolean }> {
  requirePower(actor, 'moderation')
  const signUp = await recordDecision(services, actor, { id, decision: 'approve', reason }, async (transaction) => {
    await transaction('pending_sign_ups')
      .where({ id })
      .update({
        decidedAt: transaction.raw('now()'),
        expiresAt: databaseTimeIn(transaction, { days: ACCOUNT_LIMITS.undecidedDays }),
      })
  })
  if (signUp.needsConfirmation && signUp.confirmedAt === null) return { opened: false }
  await openAccount(services, id, (transaction, userId) =>
    enqueueAccountMail(services, transaction, 'sign_up_approved', userId),
  )
  return { opened: true }
}

/** Rejects a sign-up. Its name is free at once. Its row is deleted at once, or after the mail about it. */
export async function rejectSignUp(
  services: Services,
  actor: Actor,
  id: number,
  { reason, answer }: { readonly reason?: string | undefined; readonly answer?: string | undefined },
): Promise<void> {
  requirePower(actor, 'moderation')
  await recordDecision(
    services,
    actor,
    { id, decision: 'reject', reason },
    async (transaction, { email, confirmedAt }) => {
      await deleteSignUpAddress(transaction, id)
      const rows = transaction('pending_sign_ups').where({ id })
      if (email === null || confirmedAt === null || services.config.mail === undefined)
        return void (await rows.delete())
      await rows.update({
        username: null,
        passwordHash: null,
        tokenHash: null,
        reason: null,
        answer: answer ?? null,
        decidedAt: transaction.raw('now()'),
        expiresAt: databaseTimeIn(transaction, { days: 1 }),
      })
      await enqueueMails(services, transaction, [{ kind: 'sign_up_rejected', signUpId: id }])
    },
  )
}

/** The sign-ups that wait for a decision, newest first. */
export async function listSignUps(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  page: IdPage,
): Promise<ListPage<UndecidedSignUp>> {
  requirePower(actor, 'moderation')
  return listUndecidedSignUps(db, page)
}

/** A sign-up that waits for a decision. */
export async function readSignUp({ db }: Pick<Services, 'db'>, actor: Actor, id: number): Promise<PendingSignUp> {
  requirePower(actor, 'moderation')
  return getWaitingSignUp(db, id)
}

/** Decides several sign-ups, each in its own transaction. Sign-ups that no longer wait are left out. */
export async function decideSignUps(
  services: Services,
  actor: Actor,
  ids: readonly number[],
  decision: {
    readonly decision: 'approve' | 'reject'
    readonly reason?: string | undefined
    readonly answer?: string | undefined
  },
): Promise<readonly number[]> {
  requirePower(actor, 'moderation')
  requireReason(decision)
  const decidedIds: number[] = []
  for (const id of new Set(ids)) {
    try {
      await (decision.decision === 'approve' ? approveSignUp : rejectSignUp)(services, actor, id, decision)
      decidedIds.push(id)
    } catch (error) {
      if (!(error instanceof Refusal) || error.reason !== 'sign_up_not_found') throw error
    }
  }
  return decidedIds
}

interface SignUpDecision {
  readonly id: number
  readonly decision: 'approve' | 'reject'
  readonly reason?: string | undefined
}

/** Runs the change of a decision in the transaction of its audit entry. Returns the sign-up as it was before. */
async function recordDecision(
  services: Services,
  actor: Actor,
  { id, decision, reason }: SignUpDecision,
  change: (transaction: Knex.Transaction, signUp: PendingSignUp) => Promise<void>,
): Promise<PendingSignUp> {
  let signUp = await getWaitingSignUp(services.db, id)
  const givenReason = requireReason({ reason })
  const target = { type: 'sign_up', label: signUp.username ?? '' }
  await recordOperatorChange(
    services,
    actor,
    { action: `sign_up.${decision}`, target, reason: givenReason },
    async (transaction) => {
      // A confirmation may have changed the row since it was read.
      signUp = await getWaitingSignUp(transaction, id, true)
      await change(transaction, signUp)
      return { decision }
    },
  )
  return signUp
}

async function getWaitingSignUp(db: Knex, id: number, isLocking = false): Promise<PendingSignUp> {
  const signUp = await pendingSignUps(db)
    .where({ id, needsApproval: true, decidedAt: null })
    .modify((query) => isLocking && query.forUpdate())
    .first()
  if (signUp === undefined) throw signUpMissing()
  return signUp
}

function signUpMissing(): Refusal {
  return new Refusal('sign_up_not_found', 'There is no such sign-up that waits for a decision.')
}
