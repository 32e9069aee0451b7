import type { Knex } from 'knex'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'

export const MAIL_RULE_SEVERITIES = ['reject', 'approve'] as const
export type MailRuleSeverity = (typeof MAIL_RULE_SEVERITIES)[number]
/** The mildest first. */
export const IP_RULE_SEVERITIES = ['sign_up_approval', 'sign_up_block', 'no_access'] as const
export type IpRuleSeverity = (typeof IP_RULE_SEVERITIES)[number]

interface StoredRule<Severity extends string> {
  readonly id: number
  readonly severity: Severity
  readonly comment: string
  readonly until: Date | null
  /** How often it has applied. */
  readonly hits: number
  /** A user name, or `command`. */
  readonly createdBy: string
  readonly createdAt: Date
}

/** A rule about an e-mail address, of which only the domain can be shown, or about a mail domain with its subdomains. */
export interface MailRule extends StoredRule<MailRuleSeverity> {
  readonly kind: 'email' | 'domain'
  readonly mac: Buffer
  readonly domain: string
}

export interface IpRule extends StoredRule<IpRuleSeverity> {
  /** An address with the length of its prefix. */
  readonly network: string
}

/** The rules of each table. */
export interface NetworkRules {
  readonly mail_rules: MailRule
  readonly ip_rules: IpRule
}

export type NetworkRuleTable = keyof NetworkRules

/** The changeable fields of a rule. */
export type RuleSettings = Pick<StoredRule<string>, 'severity' | 'comment' | 'until'>

export function listNetworkRules<Table extends NetworkRuleTable>(
  db: Knex,
  table: Table,
  page: IdPage,
): Promise<ListPage<NetworkRules[Table]>> {
  return readIdPage(db(table), page)
}

export async function hasNetworkRule(db: Knex, table: NetworkRuleTable, id: number): Promise<boolean> {
  return (await db(table).where({ id }).first('id')) !== undefined
}

export async function lockNetworkRule<Table extends NetworkRuleTable>(
  transaction: Knex.Transaction,
  table: Table,
  key: Readonly<Record<string, unknown>>,
): Promise<NetworkRules[Table] | undefined> {
  return transaction(table).where(key).forUpdate().first()
}

/** Undefined: there is a rule for the same network, address or domain. */
export async function insertNetworkRule<Table extends NetworkRuleTable>(
  transaction: Knex.Transaction,
  table: Table,
  row: Omit<NetworkRules[Table], 'id' | 'hits'>,
): Promise<NetworkRules[Table] | undefined> {
  const [made] = await transaction(table).insert(row).onConflict().ignore().returning('*')
  return made
}

export async function updateNetworkRule<Table extends NetworkRuleTable>(
  transaction: Knex.Transaction,
  table: Table,
  id: number,
  settings: RuleSettings,
): Promise<NetworkRules[Table]> {
  const [row] = await transaction(table).where({ id }).update(settings).returning('*')
  return row
}

export async function deleteNetworkRule(
  transaction: Knex.Transaction,
  table: NetworkRuleTable,
  id: number,
): Promise<void> {
  await transaction(table).where({ id }).delete()
}

/** Locks rules whose time is over. */
export async function lockEndedRules<Table extends NetworkRuleTable>(
  transaction: Knex.Transaction,
  table: Table,
  limit: number,
): Promise<readonly NetworkRules[Table][]> {
  return transaction(table).whereRaw('until <= now()').orderBy('id').limit(limit).forUpdate()
}

/** The rules for an address, its domain, the domains above it, and the hosts that take its mail. */
export async function findMailRules(
  db: Knex,
  { mac, domains }: { readonly mac: Buffer; readonly domains: readonly string[] },
): Promise<readonly MailRule[]> {
  return db('mail_rules')
    .where((either) =>
      either.where({ mac }).orWhere((ofDomain) => ofDomain.where({ kind: 'domain' }).whereIn('domain', [...domains])),
    )
    .whereRaw('(until is null or until > now())')
    .orderBy('id')
}

/** Whether there is a rule for which the hosts that take the mail of a domain matter. */
export async function hasDomainRules(db: Knex): Promise<boolean> {
  return (await db('mail_rules').where({ kind: 'domain' }).first('id')) !== undefined
}

/** The rules whose network has the address. */
export async function findIpRules(db: Knex, ip: string | null): Promise<readonly IpRule[]> {
  if (ip === null) return []
  return db('ip_rules')
    .whereRaw('network >>= cast(? as inet)', [ip])
    .whereRaw('(until is null or until > now())')
    .orderBy('id')
}

/** The networks without access. */
export async function listClosedNetworks(db: Knex): Promise<readonly string[]> {
  return db('ip_rules')
    .where({ severity: 'no_access' })
    .whereRaw('(until is null or until > now())')
    .orderBy('id')
    .pluck('network')
}

export async function countRuleHits(db: Knex, table: NetworkRuleTable, ids: readonly number[]): Promise<void> {
  if (ids.length > 0)
    await db(table)
      .whereIn('id', [...ids])
      .increment('hits', 1)
}
