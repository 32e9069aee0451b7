import type { ValuesOf } from './schemas.js'
import type { MAIL_VARIABLES } from './variables/mail.js'

/** How the pod sends mail. */
export interface MailSettings {
  /** An smtp or smtps address, with user and password. */
  readonly url: string
  readonly from: string
  readonly replyTo: string | undefined
  /** The envelope sender, to which a tag for the user is added; undefined: `from`. */
  readonly bounceAddress: string | undefined
  /** Mails that the pod sends in a minute. */
  readonly perMinute: number
  readonly dkim: { readonly domain: string; readonly selector: string; readonly keyFile: string } | undefined
}

type MailVariables = ValuesOf<typeof MAIL_VARIABLES>

const ADDRESS = /^[^\s@<>,;:"()[\]\\]{1,64}@[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i

/** Undefined: there is no mail server. */
export function readMailSettings(variables: MailVariables, faults: string[]): MailSettings | undefined {
  const { SMTP_URL: url, MAIL_FROM: from } = variables
  const addresses = {
    MAIL_FROM: from,
    MAIL_REPLY_TO: variables.MAIL_REPLY_TO,
    MAIL_BOUNCE_ADDRESS: variables.MAIL_BOUNCE_ADDRESS,
  }
  for (const [name, address] of Object.entries(addresses)) {
    if (address !== undefined && !ADDRESS.test(address)) {
      faults.push(`${name} must be an e-mail address like pod@pod.example, without a name.`)
    }
  }
  const dkim = readDkim(variables, faults)
  if (url === undefined) return undefined
  if (!isSmtpUrl(url)) {
    faults.push('SMTP_URL must be an address like smtp://user:password@mail.example:587 or smtps://mail.example.')
  }
  if (from === undefined) {
    faults.push('SMTP_URL needs MAIL_FROM, the e-mail address from which the pod sends.')
    return undefined
  }
  return {
    url,
    from,
    replyTo: variables.MAIL_REPLY_TO,
    bounceAddress: variables.MAIL_BOUNCE_ADDRESS,
    dkim,
    perMinute: variables.MAIL_LIMIT,
  }
}

function isSmtpUrl(text: string): boolean {
  try {
    const { protocol, hostname } = new URL(text)
    return ['smtp:', 'smtps:'].includes(protocol) && hostname !== ''
  } catch {
    return false
  }
}

function readDkim(variables: MailVariables, faults: string[]): MailSettings['dkim'] {
  const { DKIM_DOMAIN: domain, DKIM_SELECTOR: selector, DKIM_KEY_FILE: keyFile } = variables
  const isAnySet = [domain, selector, keyFile].some((value) => value !== undefined)
  if (domain !== undefined && selector !== undefined && keyFile !== undefined) return { domain, selector, keyFile }
  if (isAnySet) faults.push('DKIM_DOMAIN, DKIM_SELECTOR and DKIM_KEY_FILE belong together: set all three or none.')
  return undefined
}
