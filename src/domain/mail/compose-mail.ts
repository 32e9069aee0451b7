import type { MailData } from '../../jobs/definitions.js'
import { isAccountMail } from '../../persistence/mail/mail-kinds.js'
import type { Pod } from '../../pod/pod.js'
import { composeAccountMail } from './account-mails.js'
import { composeNotice } from './notices.js'
import { composeSignUpMail } from './sign-up-mails.js'
import type { WrittenMail } from './write-mail.js'

/** A mail that is ready to be sent. */
export interface ComposedMail extends WrittenMail {
  readonly to: string
  readonly inReplyTo?: string | undefined
  /** The one-click link; undefined: the mail cannot be switched off. */
  readonly unsubscribeUrl?: string | undefined
}

/** Reads everything a mail says at the moment of sending, and makes its tokens. Undefined: the mail is not wanted any more. */
export async function composeMail(pod: Pod, mail: MailData): Promise<ComposedMail | undefined> {
  const { signUpId } = mail
  if (signUpId !== undefined) return composeSignUpMail(pod, { ...mail, signUpId })
  if (isAccountMail(mail.kind)) return composeAccountMail(pod, { ...mail, kind: mail.kind })
  return composeNotice(pod, mail)
}
