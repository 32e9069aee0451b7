import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { raw } from 'objection'
import { parsePlainAddress } from '../../networks/ip-address.js'
import { formatNetwork } from '../../networks/network-source.js'
import { secondsUntilSignUp } from '../../persistence/accounts/invitation-records.js'
import { Invitation } from '../../persistence/models/invitation.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'
import { enqueueMails } from '../mail/enqueue-mail.js'
import { mailboxMac } from '../mail/mailboxes.js'
import { Refusal } from '../refusals.js'
import { type Account, createUser } from './accounts.js'
import { hashToken } from './token-hash.js'

type SignUpRefusal = 'sign_up_closed' | 'sign_up_full' | 'invitation_unusable'

export interface NewInvitation {
  /** Shown once: only its hash is stored. */
  readonly code: string
  readonly expiresAt: Date
}

/** Creates an invitation for one sign-up. The lifetime is in seconds. */
export async function createInvitation(
  pod: Pick<Pod, 'db'>,
  { lifetime, note }: { readonly lifetime: number; readonly note?: string | undefined },
): Promise<NewInvitation> {
  const expiresAt = raw(`date_trunc('milliseconds', now()) + make_interval(secs => ?)`, [lifetime])
  return insertInvitation(pod.db, { note: note ?? null, expiresAt: expiresAt as never, uses: 1, createdBy: 'command' })
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
  pod: Pick<Pod, 'db' | 'config'>,
  invitation: string | undefined,
): Promise<Refusal<SignUpRefusal> | undefined> {
  const { registrations } = pod.config
  if (registrations === 'open') return findFullDay(pod)
  if (registrations === 'closed') return signUpClosed('This pod does not accept new accounts at the moment.')
  if (invitation === undefined)
    return signUpClosed(
      'This pod accepts new accounts by invitation only. Ask its operator for an invitation.',
      'sign_up_invited',
    )
  const usableInvitation = await findUsableInvitation(pod, invitation)
  return usableInvitation ? undefined : invitationUnusable()
}

/** Creates an account and marks the invitation as used where one is required. */
export async function signUp(
  pod: Pod,
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
  const refused = await findSignUpRefusal(pod, invitation)
  if (refused) throw refused
  return createUser(pod, person, async (transaction, user) => {
    await User.query(transaction)
      .findById(user.id)
      .patch({
        signedUpAt: raw(`date_trunc('milliseconds', now())`),
        unconfirmedEmail: email,
        ...(termsVersion !== null && { termsVersion, termsAcceptedAt: pod.now() }),
        signUpIp: parsePlainAddress(ip),
        signUpNetwork: formatNetwork(ip),
      })
    if (email !== null) {
      await enqueueMails(pod, transaction, [
        { kind: 'confirm_email', userId: user.id, mailbox: mailboxMac(pod, email) },
      ])
    }
    if (invitation === undefined || pod.config.registrations === 'open') return
    await useInvitation(transaction, user.id, { codeHash: hashToken(invitation) })
  })
}

/** Uses an invitation for an account, in its transaction. */
export async function useInvitation(
  transaction: Knex.Transaction,
  userId: number,
  which: { readonly id: number } | { readonly codeHash: Buffer },
): Promise<void> {
  const [used] = await queryUsable(transaction)
    .where(which)
    .patch({ used: raw('used + 1'), usedAt: raw('coalesce(used_at, now())') })
    .returning('id')
  if (used === undefined) throw invitationUnusable()
  await User.query(transaction).findById(userId).patch({ invitationId: used.id })
}

/** An invitation that is not used up, expired or recalled. */
export async function findUsableInvitation({ db }: Pick<Pod, 'db'>, code: string): Promise<Invitation | undefined> {
  return queryUsable(db)
    .where({ codeHash: hashToken(code) })
    .first()
}

/** An invitation ends with the account of the moderator who made it, also while this account is locked. */
const INVITER_IS_ACTIVE = `not exists (
  select from users
  where users.username = invitations.created_by and (coalesce(users.locked_at, users.close_at, users.closed_at) is not null)
)`

function queryUsable(db: Knex) {
  return Invitation.query(db)
    .where({ recalledAt: null })
    .whereRaw('used < uses and expires_at > now()')
    .whereRaw(INVITER_IS_ACTIVE)
}

/** Refuses open sign-ups beyond the number of a day, so that a flood of accounts has a bound. */
async function findFullDay({ db, config }: Pick<Pod, 'db' | 'config'>): Promise<Refusal<SignUpRefusal> | undefined> {
  const seconds = config.signUpsPerDay === 0 ? undefined : await secondsUntilSignUp(db, config.signUpsPerDay)
  if (seconds === undefined) return undefined
  const message = 'This pod has had many new accounts today. Please try again later.'
  return new Refusal('sign_up_full', message, { details: { retryAfter: Math.max(1, seconds) } })
}

function signUpClosed(message: string, explanation = 'sign_up_closed'): Refusal<SignUpRefusal> {
  return new Refusal('sign_up_closed', message, { details: { explanation } })
}

function invitationUnusable(): Refusal<SignUpRefusal> {
  return new Refusal('invitation_unusable', 'This invitation is unknown, has expired, or was used already.')
}
