import { hash } from '@node-rs/argon2'
import type { Knex } from 'knex'
import { parsePlainAddress } from '../../../networks/ip-address.js'
import { formatNetwork } from '../../../networks/network-source.js'
import {
  countSignUps,
  insertSignUpAddress,
  isNamePending,
  lockNetwork,
  lockUsername,
} from '../../../persistence/accounts/pending-sign-ups.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import { databaseTimeIn } from '../../../persistence/sql/database-time.js'
import type { Services } from '../../../services/services.js'
import { enqueueMails } from '../../mail/enqueue-mail.js'
import { mailboxMac, readMailbox } from '../../mail/mailboxes.js'
import { enqueueStaffMail } from '../../mail/notification-mails.js'
import { Refusal } from '../../refusals.js'
import { type Account, ARGON2, findNewAccountRefusals, usernameTaken } from '../accounts.js'
import { findSignUpRefusal, findUsableInvitation, signUp } from '../invitations.js'
import { ACCOUNT_LIMITS } from '../limits.js'
import { applySignUpRules, countSignUpRules, findNetworkRefusal, namesOfRules } from './sign-up-rules.js'
import { checkAttendance, isApprovalOn } from './unattended.js'

/** The fields of a sign-up form. */
export interface SignUpForm {
  readonly username: string
  readonly password: string
  readonly email: string | undefined
  readonly reason: string | undefined
  readonly invitation: string | undefined
  /** The authorization request of an application that waits. */
  readonly requestUid: string | undefined
  /** The address of the browser. */
  readonly ip: string
  readonly language: string
  /** The version of the terms that the person has accepted; undefined: none. */
  readonly terms?: string | undefined
}

export type SignUpResult =
  | { readonly account: Account; readonly needs?: undefined }
  /** No person exists yet. */
  | { readonly account?: undefined; readonly needs: { readonly confirmation: boolean; readonly approval: boolean } }

/** All refusals of the fields of the form. Whether the e-mail address is in use is none of them. */
export async function findSignUpFormRefusals(
  services: Pick<Services, 'config' | 'db' | 'secrets' | 'mailExchanges' | 'terms'>,
  form: Pick<SignUpForm, 'ip' | 'username' | 'password' | 'email' | 'reason' | 'invitation' | 'terms'>,
): Promise<readonly Refusal[]> {
  const refusals = [...(await findNewAccountRefusals(services, form)), ...(await findEmailRefusals(services, form))]
  const isReasonFit = form.reason !== undefined && [...form.reason].length <= ACCOUNT_LIMITS.reasonCharacters
  if ((await needsApproval(services, form.invitation)) && !isReasonFit) {
    const message = `Say in 1 to ${ACCOUNT_LIMITS.reasonCharacters} characters why you want an account here.`
    refusals.push(new Refusal('reason_invalid', message))
  }
  if (services.terms !== undefined && form.terms !== services.terms.version) {
    refusals.push(
      form.terms === undefined
        ? new Refusal('terms_missing', 'Accept the terms of this pod.')
        : new Refusal('terms_changed', 'The terms of this pod have changed. Read them again and accept them.'),
    )
  }
  return refusals
}

async function findEmailRefusals(
  services: Pick<Services, 'config' | 'db' | 'secrets' | 'mailExchanges'>,
  { email, password, ip }: Pick<SignUpForm, 'email' | 'password' | 'ip'>,
): Promise<readonly Refusal[]> {
  if (services.config.mail === undefined) return []
  try {
    const address = readMailbox(email ?? '')
    await applySignUpRules(services, { email: address, ip })
    if (password.toLowerCase() !== address.toLowerCase()) return []
    const message = 'Choose a password that is not your e-mail address.'
    return [new Refusal('password_invalid', message, { details: { explanation: 'password_is_email' } })]
  } catch (error) {
    if (error instanceof Refusal) return [error]
    throw error
  }
}

/** A usable invitation takes the place of the decision. */
export async function needsApproval(
  services: Pick<Services, 'config' | 'db'>,
  invitation: string | undefined,
): Promise<boolean> {
  if (!(await isApprovalOn(services))) return false
  return invitation === undefined || (await findUsableInvitation(services, invitation)) === undefined
}

/** The reason why this person cannot sign up at the moment, whatever the form has; undefined if the form is shown. */
export async function findSignUpPageRefusal(
  services: Services,
  { invitation, ip }: Pick<SignUpForm, 'invitation' | 'ip'>,
): Promise<Refusal | undefined> {
  const refusal = (await findNetworkRefusal(services, ip)) ?? (await findSignUpRefusal(services, invitation))
  if (refusal) return refusal
  const isInvited = invitation !== undefined && (await findUsableInvitation(services, invitation)) !== undefined
  const approval =
    !isInvited &&
    ((await isApprovalOn(services)) || (await applySignUpRules(services, { email: null, ip })).needsApproval)
  if (!services.config.signUpConfirmation && !approval) return undefined
  return findFullCapacity(services, services.db, { network: formatNetwork(ip), isForApproval: approval })
}

/** Creates the account, or a pending sign-up where a confirmation or a decision is needed. */
export async function beginSignUp(services: Services, form: SignUpForm): Promise<SignUpResult> {
  const signUpRefusal =
    (await findNetworkRefusal(services, form.ip)) ?? (await findSignUpRefusal(services, form.invitation))
  if (signUpRefusal) throw signUpRefusal
  await checkAttendance(services)
  const email = services.config.mail === undefined ? null : readMailbox(form.email ?? '')
  const invitation = form.invitation === undefined ? undefined : await findUsableInvitation(services, form.invitation)
  const rules = await applySignUpRules(services, { email, ip: form.ip })
  const approval = invitation === undefined && (rules.needsApproval || (await needsApproval(services, form.invitation)))
  const termsVersion = (services.terms && form.terms) ?? null
  const needs = { confirmation: services.config.signUpConfirmation, approval }
  if (!needs.confirmation && !needs.approval) {
    return { account: await signUp(services, { ...form, email, termsVersion }) }
  }
  const passwordHash = await hash(form.password, ARGON2)
  const network = formatNetwork(form.ip)
  await inRequestTransaction(services, async (transaction) => {
    await lockNetwork(transaction, network)
    const fullCapacity = await findFullCapacity(services, transaction, { network, isForApproval: needs.approval })
    if (fullCapacity) throw fullCapacity
    await lockUsername(transaction, form.username)
    await transaction('pending_sign_ups').where({ username: form.username }).whereRaw('expires_at <= now()').delete()
    const isTaken = (await User.byUsername(transaction, form.username)) !== undefined
    if (isTaken || (await isNamePending(transaction, form.username))) throw usernameTaken(form.username)
    const days = needs.confirmation ? ACCOUNT_LIMITS.unconfirmedDays : ACCOUNT_LIMITS.undecidedDays
    const [{ id }] = await transaction('pending_sign_ups')
      .insert({
        username: form.username,
        email,
        passwordHash,
        language: form.language,
        reason: form.reason ?? null,
        needsConfirmation: needs.confirmation,
        needsApproval: needs.approval,
        network,
        termsVersion,
        rules: [...namesOfRules(rules)],
        invitationId: invitation?.id ?? null,
        requestUid: form.requestUid ?? null,
        expiresAt: databaseTimeIn(transaction, { days }),
      })
      .returning('id')
    await insertSignUpAddress(transaction, id, parsePlainAddress(form.ip))
    await transaction('sign_up_attempts').insert({ network })
    await countSignUpRules(transaction, rules)
    if (needs.approval) await enqueueStaffMail(services, transaction, 'sign_up_waiting')
    if (needs.confirmation && email !== null) await enqueueConfirmation(services, transaction, { id, email })
  })
  return { needs }
}

/** A mail with the link; or, if the address has an account, one that says so. The worker decides which. */
export async function enqueueConfirmation(
  services: Pick<Services, 'config' | 'jobs' | 'secrets'>,
  transaction: Knex.Transaction,
  { id, email }: { readonly id: number; readonly email: string },
): Promise<void> {
  await transaction('pending_sign_ups')
    .where({ id })
    .update({ mailsSent: transaction.raw('mails_sent + 1'), mailedAt: transaction.raw('now()') })
  await enqueueMails(services, transaction, [
    { kind: 'confirm_sign_up', signUpId: id, mailbox: mailboxMac(services, email) },
  ])
}

/** The refusal of one more sign-up that waits; undefined if there is space for it. */
async function findFullCapacity(
  services: Pick<Services, 'config'>,
  db: Knex,
  { network, isForApproval }: { readonly network: string; readonly isForApproval: boolean },
): Promise<Refusal | undefined> {
  const { ofNetwork, pending, undecided } = await countSignUps(db, network)
  const { signUpBacklog } = services.config
  const isBacklogFull = isForApproval && signUpBacklog > 0 && undecided >= signUpBacklog
  if (ofNetwork < ACCOUNT_LIMITS.signUpsOfNetwork && pending < ACCOUNT_LIMITS.pendingSignUps && !isBacklogFull) {
    return undefined
  }
  const message = 'This pod has many sign-ups that wait. Please try again later.'
  return new Refusal('sign_up_full', message, { details: { retryAfter: 3_600 } })
}
