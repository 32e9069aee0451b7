import type { MailData } from '../../jobs/definitions.js'
import { type PendingSignUp, pendingSignUps } from '../../persistence/accounts/pending-sign-ups.js'
import { countMailsOfMailbox } from '../../persistence/mail/mails.js'
import type { Services } from '../../services/services.js'
import { newToken } from '../accounts/account-tokens.js'
import { hashToken } from '../accounts/token-hash.js'
import { writeAccountMail } from './account-mails.js'
import type { ComposedMail } from './compose-mail.js'
import { MAIL_LIMITS } from './limits.js'
import { mailboxMac } from './mailboxes.js'

const DAY_SECONDS = 86_400

/** A mail to an address without an account. */
export async function composeSignUpMail(
  services: Services,
  { kind, signUpId }: MailData & { readonly signUpId: number },
): Promise<ComposedMail | undefined> {
  const row = await pendingSignUps(services.db).where({ id: signUpId }).first()
  if (row?.email == null) return undefined
  return kind === 'sign_up_rejected' ? rejection(services, row, row.email) : confirmation(services, row, row.email)
}

function rejection(services: Services, { language, answer, username }: PendingSignUp, to: string): ComposedMail {
  const data = { account: username ?? '', note: answer ?? undefined }
  return { to, ...writeAccountMail(services, 'sign_up_rejected', language, { data, path: undefined }) }
}

/** The mailbox of an account gets a mail without a link: on the page, a used address looks like any other. */
async function confirmation(services: Services, row: PendingSignUp, to: string): Promise<ComposedMail | undefined> {
  if (row.confirmedAt !== null || row.username === null) return undefined
  const sent = await countMailsOfMailbox(services.db, mailboxMac(services, to), DAY_SECONDS)
  if (sent > MAIL_LIMITS.confirmationsPerDay) return undefined
  const data = { account: `${row.username}@${services.config.host}` }
  const owner = await services
    .db('users')
    .whereRaw('lower(email) = lower(?)', [to])
    .whereNotNull('emailConfirmedAt')
    .first('id')
  if (owner !== undefined) {
    return { to, ...writeAccountMail(services, 'already_registered', row.language, { data, path: undefined }) }
  }
  const token = newToken()
  await services
    .db('pending_sign_ups')
    .where({ id: row.id, confirmedAt: null })
    .update({ tokenHash: hashToken(token) })
  const path = `/users/confirm_email?token=${token}`
  return { to, ...writeAccountMail(services, 'confirm_sign_up', row.language, { data, path }) }
}
