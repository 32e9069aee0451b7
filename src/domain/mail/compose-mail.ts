import type { MailData } from '../../jobs/definitions.js'
import { isAccountMail } from '../../persistence/mail/mail-kinds.js'
import type { Services } from '../../services/services.js'
import { composeAccountMail } from './account-mails.js'
import { composeNotificationMail } from './notification-mails.js'
import { composeSignUpMail } from './sign-up-mails.js'
import type { WrittenMail } from './write-mail.js'

/** A mail that is ready to be sent. */
export interface ComposedMail extends WrittenMail {
  readonly to: string
  readonly inReplyTo?: string | undefined
  /** The one-click link; undefined: the mail cannot be switched off. */
  readonly unsubscribeUrl?: string | undefined
}

/** Reads everything a mail says at the moment of sending, and makes its tokens. Undefined: the user no longer wants the mail. */
export async function composeMail(services: Services, mail: MailData): Promise<ComposedMail | undefined> {
  const { signUpId } = mail
  if (signUpId !== undefined) return composeSignUpMail(services, { ...mail, signUpId })
  if (isAccountMail(mail.kind)) return composeAccountMail(services, { ...mail, kind: mail.kind })
  return composeNotificationMail(services, mail)
}
