import { randomBytes } from 'node:crypto'
import { raw } from 'objection'
import { Invitation } from '../../persistence/models/invitation.js'
import type { Pod } from '../../pod/pod.js'
import { Refusal } from '../refusals.js'
import { type Account, createUser } from './accounts.js'
import { hashToken } from './token-hash.js'

type SignUpRefusal = 'sign_up_closed' | 'invitation_unusable'

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
  const code = randomBytes(16).toString('hex')
  const { expiresAt } = await Invitation.query(pod.db)
    .insert({
      codeHash: hashToken(code),
      note: note ?? null,
      expiresAt: raw(`date_trunc('milliseconds', now()) + make_interval(secs => ?)`, [lifetime]),
    })
    .returning('*')
  return { code, expiresAt }
}

/** The reason why a sign-up with this invitation is refused; undefined if it is allowed. */
export async function findSignUpRefusal(
  pod: Pick<Pod, 'db' | 'config'>,
  invitation: string | undefined,
): Promise<Refusal<SignUpRefusal> | undefined> {
  const { registrations } = pod.config
  if (registrations === 'open') return undefined
  if (registrations === 'closed') return signUpClosed('This pod does not accept new accounts at the moment.')
  if (invitation === undefined)
    return signUpClosed('This pod accepts new accounts by invitation only. Ask its operator for an invitation.')
  const found = await queryUsableInvitation(pod, invitation).first()
  return found ? undefined : invitationUnusable()
}

/** Creates an account and marks the invitation as used where one is required. */
export async function signUp(
  pod: Pod,
  person: { readonly username: string; readonly password: string; readonly invitation: string | undefined },
): Promise<Account> {
  const { invitation } = person
  const refused = await findSignUpRefusal(pod, invitation)
  if (refused) throw refused
  return createUser(pod, person, async (transaction, user) => {
    if (invitation === undefined || pod.config.registrations === 'open') return
    const used = await queryUsableInvitation({ db: transaction }, invitation).patch({
      usedAt: pod.now(),
      userId: user.id,
    })
    if (used === 0) throw invitationUnusable()
  })
}

function queryUsableInvitation({ db }: Pick<Pod, 'db'>, code: string) {
  return Invitation.query(db)
    .where({ codeHash: hashToken(code), usedAt: null })
    .whereRaw('expires_at > now()')
}

function signUpClosed(message: string): Refusal<SignUpRefusal> {
  return new Refusal('sign_up_closed', message)
}

function invitationUnusable(): Refusal<SignUpRefusal> {
  return new Refusal('invitation_unusable', 'This invitation is unknown, has expired, or was used already.')
}
