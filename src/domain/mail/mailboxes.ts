import { domainToASCII } from 'node:url'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'

const MAX_ADDRESS_BYTES = 254

/** Reads a typed e-mail address; the domain becomes lower case and ASCII. Throws a Refusal. */
export function readMailbox(text: string): string {
  const trimmedText = text.trim()
  const [local = '', domain = '', ...rest] = trimmedText.split('@')
  const host = domainToASCII(domain)
  const address = `${local}@${host}`
  const isAddress =
    rest.length === 0 &&
    /^[^\s()<>[\]\\,;:"\p{Cc}\p{Cf}]{1,64}$/u.test(local) &&
    /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(host)
  if (isAddress && Buffer.byteLength(address) <= MAX_ADDRESS_BYTES) return address
  throw new Refusal('email_invalid', 'Enter an e-mail address like name@mail.example.')
}

/** Reads the domain of a mail provider; it becomes lower case and ASCII. Throws a Refusal. */
export function readMailDomain(text: string): string {
  const domain = domainToASCII(text.trim().replace(/^@|^\*\.|\.$/g, ''))
  if (domain.length <= 253 && /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(domain)) return domain
  throw new Refusal('email_invalid', 'Enter a domain like mail.example.')
}

/** One form for each mailbox: lower case, without a tag, and without dots where the provider ignores them. */
function canonicalMailbox(address: string): string {
  const [local = '', domain = ''] = address.toLowerCase().split('@')
  const localPart = local.replace(/\+.*$/, '')
  const shouldIgnoreDots = domain === 'gmail.com' || domain === 'googlemail.com'
  return `${shouldIgnoreDots ? localPart.replaceAll('.', '') : localPart}@${shouldIgnoreDots ? 'gmail.com' : domain}`
}

/** The key of a rule about a mail domain, which is stored with those about addresses. */
export function mailDomainMac({ secrets }: Pick<Services, 'secrets'>, domain: string): Buffer {
  return secrets.mac(domain, 'mail domain')
}

/** The value that the pod stores instead of an address, to count mails and to compare addresses. */
export function mailboxMac({ secrets }: Pick<Services, 'secrets'>, address: string): Buffer {
  return secrets.mac(canonicalMailbox(address), 'mailbox')
}
