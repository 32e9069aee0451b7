import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { raw } from 'objection'
import { parsePlainAddress } from '../../networks/ip-address.js'
import { formatNetwork } from '../../networks/network-source.js'
import { secondsUntilSignUp } from '../../persistence/accounts/invitation-records.js'
import { Invitation } from '../../persistence/models/invitation.js'
import { User } from '../../persistence/models/user.js'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import type { Services } from '../../services/services.js'
import { enqueueMails } from '../mail/enqueue-mail.js'
import { mailboxMac } from '../mail/mailboxes.js'
import { Refusal } from '../refusals.js'
import { type Account, createUser } from './accounts.js'
import { hashToken } from './token-hash.js'

export interface NewInvitation {
  /** Shown once: only its hash is stored. */
  readonly code: string
  readonly expiresAt: Date
}

/** Creates an invitation for one sign-up. The lifetime is in seconds. */
export async function createInvitation(
  services: Pick<Services, 'db'>,
  { lifetime, note }: { readonly lifetime: number; readonly note?: string | undefined },
): Promise<NewInvitation> {
  const expiresAt = raw(`${NOW_SQL} + make_interval(secs => ?)`, [lifetime])
  return insertInvitation(services.db, {
    note: note ?? null,
    expiresAt: expiresAt as never,
    uses: 1,
    createdBy: 'command',
  })
}

/** Inserts an invitation with a new code. */
export async function insertInvitation(
  db: Knex,
  invitation: Pick<Invitation, 'note' | 'expiresAt' | 'uses' | 'createdBy'> & Partial<Pick<Invitation, 'inviterId'>>,
): Promise<NewInvitation & { readonly id: number }> {
  const code = randomBytes(16).toString('hex')
  const { id, expiresAt } = await Invitation.query(db)
    .insert({ ...invitation, codeHash: hashToken(code) })
    .returning('*')
  return { id, code, expiresAt }
}

/** The reason why a sign-up with this invitation is refused; undefined if it is allowed. */
export async function findSignUpRefusal(
  services: Pick<Services, 'config' | 'db'>,
  invitation: string | undefined,
): Promise<Refusal | undefined> {
  const { registrations } = services.config
  if (registrations === 'closed') return signUpClosed('This pod does not accept new accounts at the moment.')
  if (invitation !== undefined && (await findUsableInvitation(services, invitation)) === undefined)
    return invitationUnusable()
  if (registrations === 'open') return findFullDay(services)
  if (invitation !== undefined) return undefined
  return signUpClosed(
    'This pod accepts new accounts by invitation only. Ask its operator for an invitation.',
    'sign_up_invited',
  )
}

/** Creates an account and counts the use of the invitation. */
export async function signUp(
  services: Services,
  person: {
    readonly username: string
    readonly password: string
    readonly invitation: string | undefined
    readonly language?: string
    /** Not confirmed yet. */
    readonly email?: string | null
    /** The address of the browser. */
    readonly ip: string
    /** Null: the pod has no terms. */
    readonly termsVersion?: string | null
  },
): Promise<Account> {
  const { invitation, email = null, ip, termsVersion = null } = person
  const signUpRefusal = await findSignUpRefusal(services, invitation)
  if (signUpRefusal) throw signUpRefusal
  return createUser(services, person, async (transaction, user) => {
    await User.query(transaction)
      .findById(user.id)
      .patch({
        signedUpAt: raw(NOW_SQL),
        unconfirmedEmail: email,
        ...(termsVersion !== null && { termsVersion, termsAcceptedAt: services.now() }),
        signUpIp: parsePlainAddress(ip),
        signUpNetwork: formatNetwork(ip),
      })
    if (email !== null) {
      await enqueueMails(services, transaction, [
        { kind: 'confirm_email', userId: user.id, mailbox: mailboxMac(services, email) },
      ])
    }
    if (invitation === undefined) return
    await useInvitation(transaction, user.id, { codeHash: hashToken(invitation) })
  })
}

/** Uses an invitation for an account, in its transaction. */
export async function useInvitation(
  transaction: Knex.Transaction,
  userId: number,
  key: { readonly id: number } | { readonly codeHash: Buffer },
): Promise<void> {
  const [usedInvitation] = await queryUsable(transaction)
    .where(key)
    .patch({ used: raw('used + 1'), usedAt: raw('coalesce(used_at, now())') })
    .returning('id')
  if (usedInvitation === undefined) throw invitationUnusable()
  await User.query(transaction).findById(userId).patch({ invitationId: usedInvitation.id })
}

/** An invitation that is not used up, expired or recalled. */
export async function findUsableInvitation(
  { db }: Pick<Services, 'db'>,
  code: string,
): Promise<Invitation | undefined> {
  return queryUsable(db)
    .where({ codeHash: hashToken(code) })
    .first()
}

/** An invitation ends when the account of its moderator is closed or locked. */
const INVITER_IS_ACTIVE_SQL = `not exists (
  select from users
  where users.username = invitations.created_by and (coalesce(users.locked_at, users.close_at, users.closed_at) is not null)
)`

function queryUsable(db: Knex) {
  return Invitation.query(db)
    .where({ recalledAt: null })
    .whereRaw('used < uses and expires_at > now()')
    .whereRaw(INVITER_IS_ACTIVE_SQL)
}

/** Refuses open sign-ups beyond the number of a day, so that a flood of accounts has a bound. */
async function findFullDay({ db, config }: Pick<Services, 'config' | 'db'>): Promise<Refusal | undefined> {
  const seconds = config.signUpsPerDay === 0 ? undefined : await secondsUntilSignUp(db, config.signUpsPerDay)
  if (seconds === undefined) return undefined
  const message = 'This pod has had many new accounts today. Please try again later.'
  return new Refusal('sign_up_full', message, { details: { retryAfter: Math.max(1, seconds) } })
}

function signUpClosed(message: string, explanation = 'sign_up_closed'): Refusal {
  return new Refusal('sign_up_closed', message, { details: { explanation } })
}

function invitationUnusable(): Refusal {
  return new Refusal('invitation_unusable', 'This invitation is unknown, has expired, or was used already.')
}
