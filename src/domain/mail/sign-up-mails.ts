import type { MailData } from '../../jobs/definitions.js'
import { type PendingSignUp, pendingSignUps } from '../../persistence/accounts/pending-sign-ups.js'
import { countMailsOfMailbox } from '../../persistence/mail/mails.js'
import type { Pod } from '../../pod/pod.js'
import { newToken } from '../accounts/account-tokens.js'
import { hashToken } from '../accounts/token-hash.js'
import { writeAccountMail } from './account-mails.js'
import type { ComposedMail } from './compose-mail.js'
import { MAIL_LIMITS } from './limits.js'
import { mailboxMac } from './mailboxes.js'

const DAY_SECONDS = 86_400

/** A mail to an address without an account. */
export async function composeSignUpMail(
  pod: Pod,
  { kind, signUpId }: MailData & { readonly signUpId: number },
): Promise<ComposedMail | undefined> {
  const row = await pendingSignUps(pod.db).where({ id: signUpId }).first()
  if (row?.email == null) return undefined
  return kind === 'sign_up_rejected' ? rejection(pod, row, row.email) : confirmation(pod, row, row.email)
}

function rejection(pod: Pod, { language, answer, username }: PendingSignUp, to: string): ComposedMail {
  const facts = { account: username ?? '', note: answer ?? undefined }
  return { to, ...writeAccountMail(pod, 'sign_up_rejected', language, { facts, path: undefined }) }
}

/** The mailbox of an account gets a mail without a link: on the page, a used address looks like any other. */
async function confirmation(pod: Pod, row: PendingSignUp, to: string): Promise<ComposedMail | undefined> {
  if (row.confirmedAt !== null || row.username === null) return undefined
  const sent = await countMailsOfMailbox(pod.db, mailboxMac(pod, to), DAY_SECONDS)
  if (sent > MAIL_LIMITS.confirmationsPerDay) return undefined
  const facts = { account: `${row.username}@${pod.config.host}` }
  const owner = await pod
    .db('users')
    .whereRaw('lower(email) = lower(?)', [to])
    .whereNotNull('emailConfirmedAt')
    .first('id')
  if (owner !== undefined) {
    return { to, ...writeAccountMail(pod, 'already_registered', row.language, { facts, path: undefined }) }
  }
  const token = newToken()
  await pod
    .db('pending_sign_ups')
    .where({ id: row.id, confirmedAt: null })
    .update({ tokenHash: hashToken(token) })
  const path = `/users/confirm_email?token=${token}`
  return { to, ...writeAccountMail(pod, 'confirm_sign_up', row.language, { facts, path }) }
}
