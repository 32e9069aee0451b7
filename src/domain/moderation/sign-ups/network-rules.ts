import type { Knex } from 'knex'
import { overlapsNetworks, parseNetworkList, readNetwork } from '../../../networks/trusted-proxies.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import {
  deleteNetworkRule,
  hasNetworkRule,
  IP_RULE_SEVERITIES,
  type IpRule,
  type IpRuleSeverity,
  insertNetworkRule,
  listNetworkRules,
  lockEndedRules,
  lockNetworkRule,
  type MailRule,
  type MailRuleSeverity,
  type NetworkRules,
  type NetworkRuleTable,
  type RuleSettings,
  updateNetworkRule,
} from '../../../persistence/moderation/network-rules.js'
import type { IdPage, ListPage } from '../../../persistence/sql/id-page.js'
import { isWithinLength } from '../../../protocol/values.js'
import type { Services } from '../../../services/services.js'
import { mailboxMac, mailDomainMac, readMailbox, readMailDomain } from '../../mail/mailboxes.js'
import { findTextFault } from '../../posts/texts.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower, SYSTEM_ACTOR } from '../actor.js'
import { MODERATION_LIMITS } from '../limits.js'
import {
  type ActionOptions,
  type ActionOutcome,
  recordAction,
  requireFutureEnd,
  requireReason,
} from '../record-action.js'
import { reloadClosedNetworks } from './closed-networks.js'

type NetworkRuleDependencies = Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'secrets' | 'log' | 'now'>

export interface RuleInput<Severity extends string> {
  readonly severity?: Severity | undefined
  readonly comment?: string | undefined
  /** Null: no end. */
  readonly until?: Date | null | undefined
}

export interface MailRuleInput extends RuleInput<MailRuleSeverity> {
  readonly kind: MailRule['kind']
  readonly value: string
}

export interface IpRuleInput extends RuleInput<IpRuleSeverity> {
  readonly cidr: string
  readonly severity: IpRuleSeverity
}

export interface RuleOutcome<Rule> extends ActionOutcome {
  readonly rule: Rule
}

/** Adds a rule for an e-mail address or a mail domain, or changes the one that is there. */
export function addMailRule(
  services: NetworkRuleDependencies,
  actor: Actor,
  { kind, value, severity = 'reject', ...input }: MailRuleInput,
  options: ActionOptions,
): Promise<RuleOutcome<MailRule>> {
  requirePower(actor, 'moderation')
  const address = kind === 'email' ? readMailbox(value) : undefined
  const domain = address === undefined ? readMailDomain(value) : address.slice(address.indexOf('@') + 1)
  const mac = address === undefined ? mailDomainMac(services, domain) : mailboxMac(services, address)
  return addRule(
    services,
    actor,
    { table: 'mail_rules', key: { mac }, row: { kind, mac, domain }, severity, ...input },
    options,
  )
}

interface NetworkRuleOptions extends ActionOptions {
  /** The address of the moderator, who cannot close themselves out. */
  readonly ownAddress?: string | undefined
}

/** Adds a rule for a network, or changes the one that is there. */
export async function addIpRule(
  services: NetworkRuleDependencies,
  actor: Actor,
  { cidr, ...input }: IpRuleInput,
  { ownAddress, ...options }: NetworkRuleOptions,
): Promise<RuleOutcome<IpRule>> {
  requirePower(actor, 'moderation')
  const network = readRuleNetwork(services, cidr)
  const outcome = await addRule(
    services,
    actor,
    { table: 'ip_rules', key: { network }, row: { network }, ...input },
    { ...options, ownAddress },
  )
  await reloadClosedNetworks(services)
  return outcome
}

interface RuleKey<Table extends NetworkRuleTable> {
  readonly table: Table
  readonly id: number
}

export type NetworkRuleChange<Table extends NetworkRuleTable> = RuleKey<Table> &
  RuleInput<NetworkRules[Table]['severity']>

/** Changes severity, comment or end of a rule. */
export async function changeNetworkRule<Table extends NetworkRuleTable>(
  services: NetworkRuleDependencies,
  actor: Actor,
  { table, id, severity, comment, until }: NetworkRuleChange<Table>,
  options: NetworkRuleOptions,
): Promise<RuleOutcome<NetworkRules[Table]>> {
  requirePower(actor, 'moderation')
  const outcome = await inRequestTransaction(services, async (transaction) => {
    const before = await requireRule(transaction, table, id)
    const reason = requireReason(options)
    const scope = { services, transaction, actor, table }
    return saveRule(scope, before, { severity, comment, until }, { ...options, reason })
  })
  if (table === 'ip_rules') await reloadClosedNetworks(services)
  return outcome
}

export async function removeNetworkRule<Table extends NetworkRuleTable>(
  services: NetworkRuleDependencies,
  actor: Actor,
  { table, id }: RuleKey<Table>,
  options: ActionOptions,
): Promise<RuleOutcome<NetworkRules[Table]>> {
  requirePower(actor, 'moderation')
  const outcome = await inRequestTransaction(services, async (transaction) => {
    const rule = await requireRule(transaction, table, id)
    const reason = requireReason(options)
    return { changed: true, rule, action: await deleteRule({ services, transaction, actor, table }, rule, reason) }
  })
  if (table === 'ip_rules') await reloadClosedNetworks(services)
  return outcome
}

export async function requireNetworkRule(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  { table, id }: RuleKey<NetworkRuleTable>,
): Promise<void> {
  requirePower(actor, 'moderation')
  if (!(await hasNetworkRule(db, table, id))) throw ruleNotFound()
}

/** Lists rules, newest first. */
export async function listRulesForSignUps<Table extends NetworkRuleTable>(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  table: Table,
  page: IdPage,
): Promise<ListPage<NetworkRules[Table]>> {
  requirePower(actor, 'moderation')
  return listNetworkRules(db, table, page)
}

/** Removes rules whose time is over, each with an audit entry of the system; returns their number. */
export async function endNetworkRules(services: NetworkRuleDependencies): Promise<number> {
  let endedRules = 0
  for (const table of ['mail_rules', 'ip_rules'] as const) {
    endedRules += await inRequestTransaction(services, async (transaction) => {
      const rules = await lockEndedRules(transaction, table, MODERATION_LIMITS.endedRulesPerBatch)
      const scope = { services, transaction, actor: SYSTEM_ACTOR, table }
      for (const rule of rules) await deleteRule(scope, rule, 'The rule has expired.')
      return rules.length
    })
  }
  return endedRules
}

/** The subject of a rule, without the name of a mailbox. */
export function labelOfRule(rule: MailRule | IpRule): string {
  if ('network' in rule) return rule.network
  return rule.kind === 'email' ? `…@${rule.domain}` : rule.domain
}

/** The transaction that changes a rule of one table, and the person who changes it. */
interface RuleScope<Table extends NetworkRuleTable> {
  readonly services: NetworkRuleDependencies
  readonly transaction: Knex.Transaction
  readonly actor: Actor
  readonly table: Table
}

interface NewRule<Table extends NetworkRuleTable> extends RuleInput<NetworkRules[Table]['severity']> {
  readonly table: Table
  /** The columns of its unique key. */
  readonly key: Readonly<Record<string, unknown>>
  readonly row: Pick<NetworkRules[Table], Exclude<keyof NetworkRules[Table], keyof RuleSettings | CreatedField>>
  readonly severity: NetworkRules[Table]['severity']
}

type CreatedField = 'id' | 'hits' | 'createdBy' | 'createdAt'

async function addRule<Table extends NetworkRuleTable>(
  services: NetworkRuleDependencies,
  actor: Actor,
  { table, key, row, severity, comment, until }: NewRule<Table>,
  options: NetworkRuleOptions,
): Promise<RuleOutcome<NetworkRules[Table]>> {
  const reason = requireReason(options)
  const settings = { severity, comment: readComment(comment ?? ''), until: readEnd(services, until ?? null) }
  return inRequestTransaction(services, async (transaction) => {
    const scope = { services, transaction, actor, table }
    const newRule = { ...row, ...settings, createdBy: actor.name, createdAt: services.now() }
    const rule = await insertNetworkRule(
      transaction,
      table,
      newRule as unknown as Omit<NetworkRules[Table], 'id' | 'hits'>,
    )
    if (rule === undefined) {
      const before = await lockNetworkRule(transaction, table, key)
      if (before === undefined) throw ruleNotFound()
      return saveRule(scope, before, { severity, comment, until }, { ...options, reason })
    }
    if ('network' in rule) requireOtherNetwork(rule.network, options)
    const step = { name: 'add', reason, caseId: options.caseId, after: rule } as const
    const action = await recordStep(scope, rule, step)
    return { changed: true, rule, action }
  })
}

async function saveRule<Table extends NetworkRuleTable>(
  scope: RuleScope<Table>,
  before: NetworkRules[Table],
  { severity, comment, until }: RuleInput<NetworkRules[Table]['severity']>,
  { reason, caseId, ownAddress }: NetworkRuleOptions & { readonly reason: string },
): Promise<RuleOutcome<NetworkRules[Table]>> {
  const { services, transaction, table } = scope
  const settings = {
    severity: severity ?? before.severity,
    comment: comment === undefined ? before.comment : readComment(comment),
    until: until === undefined ? before.until : readEnd(services, until),
  }
  const isSame =
    settings.severity === before.severity &&
    settings.comment === before.comment &&
    settings.until?.getTime() === before.until?.getTime()
  if (isSame) return { changed: false, rule: before }
  if ('network' in before && isStricter(settings, before)) requireOtherNetwork(before.network, { ownAddress })
  const rule = await updateNetworkRule(transaction, table, before.id, settings)
  const step = { name: 'change', reason, caseId, before, after: rule } as const
  const action = await recordStep(scope, rule, step)
  return { changed: true, rule, action }
}

async function deleteRule<Table extends NetworkRuleTable>(
  scope: RuleScope<Table>,
  rule: NetworkRules[Table],
  reason: string,
) {
  await deleteNetworkRule(scope.transaction, scope.table, rule.id)
  return recordStep(scope, rule, { name: 'remove', reason, before: rule })
}

interface RuleStep {
  readonly name: 'add' | 'change' | 'remove'
  readonly reason: string
  readonly caseId?: number | undefined
  readonly before?: RuleSettings
  readonly after?: RuleSettings
}

/** Records a change of a rule as an action without an undo. */
function recordStep(
  { services, transaction, actor, table }: RuleScope<NetworkRuleTable>,
  rule: MailRule | IpRule,
  { name, before, after, ...step }: RuleStep,
) {
  return recordAction(services, transaction, actor, {
    kind: `${KINDS[table]}.${name}`,
    target: targetOf(table, rule),
    ...step,
    undo: { possible: false },
    ...(before && { before: auditValues(before) }),
    ...(after && { after: auditValues(after) }),
  })
}

const KINDS = { mail_rules: 'mail_rule', ip_rules: 'ip_rule' } as const satisfies Readonly<
  Record<NetworkRuleTable, string>
>

function targetOf(table: NetworkRuleTable, rule: MailRule | IpRule) {
  return { type: KINDS[table], guid: String(rule.id), label: labelOfRule(rule) }
}

function auditValues({ severity, comment, until }: RuleSettings) {
  return { severity, comment, until: until?.toISOString() ?? null }
}

async function requireRule<Table extends NetworkRuleTable>(transaction: Knex.Transaction, table: Table, id: number) {
  const rule = await lockNetworkRule(transaction, table, { id })
  if (rule === undefined) throw ruleNotFound()
  return rule
}

/** Refuses networks that are too wide or would close out this machine or the proxy in front of the pod. */
function readRuleNetwork({ config }: Pick<Services, 'config'>, cidr: string): string {
  const network = readNetwork(cidr.trim())
  if (network === undefined) {
    throw new Refusal('cidr_invalid', 'This is not a network like 198.51.100.0/24 or 2001:db8::/32.')
  }
  if (network.prefixLength < (network.isIpv6 ? 32 : 8)) {
    throw new Refusal('too_broad', 'The prefix must be /8 or longer (IPv4), /32 or longer (IPv6).')
  }
  if (overlapsNetworks(network.text, 'loopback')) {
    throw new Refusal('protected_network', 'This network is this machine.')
  }
  if (typeof config.trustProxy === 'string' && overlapsNetworks(network.text, config.trustProxy)) {
    throw new Refusal('protected_network', 'This network has a proxy that the pod trusts (TRUST_PROXY).')
  }
  return network.text
}

function requireOtherNetwork(network: string, { ownAddress }: Pick<NetworkRuleOptions, 'ownAddress'>): void {
  if (ownAddress === undefined || !parseNetworkList(network)(ownAddress)) return
  throw new Refusal('own_address', 'Your own address is in this network.')
}

function isStricter(after: { readonly severity: string }, before: IpRule): boolean {
  const mildestFirst: readonly string[] = IP_RULE_SEVERITIES
  return mildestFirst.indexOf(after.severity) > mildestFirst.indexOf(before.severity)
}

function readComment(text: string): string {
  const comment = text.trim()
  const isTooLong = !isWithinLength(comment, MODERATION_LIMITS.reasonCharacters)
  if (isTooLong || (comment !== '' && findTextFault(comment) !== undefined)) {
    throw new Refusal(
      'comment_invalid',
      `A comment must have at most ${MODERATION_LIMITS.reasonCharacters} characters.`,
    )
  }
  return comment
}

function readEnd(services: Pick<Services, 'now'>, until: Date | null): Date | null {
  requireFutureEnd(services, until)
  return until
}

function ruleNotFound(): Refusal {
  return new Refusal('rule_not_found', 'There is no rule with this number.')
}
