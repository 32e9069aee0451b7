import { isThisMachine } from './addresses.js'
import type { MailSettings } from './mail-settings.js'
import { splitList } from './split-list.js'
import type { Environment } from './variables.js'

/** Who may sign up, and what they must do for it. */
export function signUpSettings(variables: Environment, url: URL, mail: MailSettings | undefined) {
  return {
    registrations: variables.REGISTRATIONS ?? (isThisMachine(url) ? 'open' : 'closed'),
    signUpsPerDay: variables.SIGN_UPS_PER_DAY,
    invitationsPerUser: variables.INVITATIONS_PER_USER,
    signUpConfirmation: mail !== undefined && variables.SIGN_UP_CONFIRMATION !== 'off',
    signUpApproval: variables.SIGN_UP_APPROVAL === 'on',
    signUpBacklog: variables.SIGN_UP_BACKLOG,
    emailDomainBlocklist: splitList(variables.EMAIL_DOMAIN_BLOCKLIST).map((domain) => domain.toLowerCase()),
    usernameBlacklist: splitList(variables.USERNAME_BLACKLIST).map((name) => name.toLowerCase()),
  }
}

export function checkSignUpConfirmation(variables: Environment, faults: string[]): void {
  if (variables.SIGN_UP_CONFIRMATION === 'on' && variables.SMTP_URL === undefined) {
    faults.push('SIGN_UP_CONFIRMATION=on needs SMTP_URL: without a mail server no mailbox can be confirmed.')
  }
}
