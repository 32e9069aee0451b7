import type { Knex } from 'knex'
import { parsePlainAddress } from '../../../networks/ip-address.js'
import {
  countRuleHits,
  findIpRules,
  findMailRules,
  hasDomainRules,
  type IpRule,
  type MailRule,
} from '../../../persistence/moderation/network-rules.js'
import type { Services } from '../../../services/services.js'
import { mailboxMac } from '../../mail/mailboxes.js'
import { Refusal } from '../../refusals.js'

type SignUpRuleDependencies = Pick<Services, 'config' | 'db' | 'secrets' | 'mailExchanges'>

/** The rules of moderators that apply to a sign-up. */
export interface SignUpRules {
  readonly mail: readonly MailRule[]
  readonly ip: readonly IpRule[]
  readonly needsApproval: boolean
}

/** Refuses sign-ups from a network. `no_access` is checked for every page. */
export async function findNetworkRefusal({ db }: Pick<Services, 'db'>, ip: string): Promise<Refusal | undefined> {
  const isBlocked = (await findIpRules(db, parsePlainAddress(ip))).some(({ severity }) => severity === 'sign_up_block')
  return isBlocked
    ? new Refusal('sign_up_closed', 'This pod accepts no new accounts from your network at the moment.', {
        details: { explanation: 'sign_up_network' },
      })
    : undefined
}

/** Finds the rules for a sign-up. A mailbox that must not be used is refused, which counts as a hit. */
export async function applySignUpRules(
  services: SignUpRuleDependencies,
  { email, ip }: { readonly email: string | null; readonly ip: string },
): Promise<SignUpRules> {
  const mail = email === null ? [] : await requireAllowedMailbox(services, email)
  const rejectingRules = mail.filter(({ severity }) => severity === 'reject')
  await countRuleHits(
    services.db,
    'mail_rules',
    rejectingRules.map(({ id }) => id),
  )
  if (rejectingRules.length > 0) throw mailboxRefused()
  const networkRules = (await findIpRules(services.db, parsePlainAddress(ip))).filter(
    ({ severity }) => severity === 'sign_up_approval',
  )
  return { mail, ip: networkRules, needsApproval: mail.length + networkRules.length > 0 }
}

/** Counts the rules by which a sign-up waits. */
export async function countSignUpRules(transaction: Knex.Transaction, { mail, ip }: SignUpRules): Promise<void> {
  await countRuleHits(
    transaction,
    'mail_rules',
    mail.map(({ id }) => id),
  )
  await countRuleHits(
    transaction,
    'ip_rules',
    ip.map(({ id }) => id),
  )
}

/** Names of the rules in the row of the sign-up. */
export function namesOfRules({ mail, ip }: SignUpRules): readonly string[] {
  return [...mail.map(({ id }) => `mail_rule ${id}`), ...ip.map(({ id }) => `ip_rule ${id}`)]
}

/** The hosts that take the mail are looked up only where a rule about a domain exists. */
async function requireAllowedMailbox(services: SignUpRuleDependencies, email: string): Promise<readonly MailRule[]> {
  const { emailDomainBlocklist: listed } = services.config
  const domain = email.slice(email.indexOf('@') + 1)
  const hasRules = listed.length > 0 || (await hasDomainRules(services.db))
  const hosts = hasRules ? [domain, ...(await services.mailExchanges(domain))] : [domain]
  const domains = [...new Set(hosts.flatMap(withParents))]
  if (domains.some((each) => listed.includes(each))) throw mailboxRefused()
  return findMailRules(services.db, { mac: mailboxMac(services, email), domains })
}

/** `a.b.example`: itself and all domains above it. */
function withParents(domain: string): readonly string[] {
  const labels = domain.split('.')
  return labels.map((_, index) => labels.slice(index).join('.'))
}

function mailboxRefused(): Refusal {
  return new Refusal(
    'email_refused',
    'This pod accepts no sign-ups with this e-mail address, or with any of this mail provider.',
  )
}
