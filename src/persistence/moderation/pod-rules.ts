import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import { EXEMPT_FROM_BLOCKS_SQL } from '../outbound/delivery-conditions.js'
import { NOW_SQL } from '../sql/database-time.js'
import { escapeLike } from '../sql/escape-like.js'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'

export const POD_RULE_STATES = ['normal', 'limited', 'blocked'] as const
export type PodRuleState = (typeof POD_RULE_STATES)[number]

export interface PodRule {
  readonly id: number
  readonly domain: string
  readonly subdomains: boolean
  readonly port: number | null
  readonly state: PodRuleState
  readonly reason: string
  readonly publicComment: string
  readonly obfuscate: boolean
  readonly rejectMedia: boolean
  readonly rejectReports: boolean
  readonly until: Date | null
  readonly source: 'manual' | 'import'
  readonly batchId: number | null
  readonly createdBy: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type NewPodRule = Omit<PodRule, 'id' | 'createdAt' | 'updatedAt'>

/** A rule as lists show it. */
export interface ListedPodRule extends PodRule {
  /** Pods at the hosts of the rule. */
  readonly knownPods: number
}

export interface PodRuleFilter {
  /** A part of the domain. */
  readonly q?: string | undefined
  readonly state?: PodRuleState | undefined
  readonly batchId?: number | undefined
}

/** SQL condition on `pods`: the rule applies to the pod unless another one has a longer domain. Index `pods_domains`. */
const POD_IS_WITHIN_SQL = `pod_domains(pods.host) @> array[pod_rules.domain]
  and (pod_rules.subdomains or (pod_domains(pods.host))[1] = pod_rules.domain)
  and (pod_rules.port is null or pods.port = pod_rules.port)`

const KNOWN_PODS_SQL = `(select count(*)::integer from pods where ${POD_IS_WITHIN_SQL}) as known_pods`

/** Changes of rules are made one after the other, and not while a new pod reads them. */
export async function lockPodRules(transaction: Knex.Transaction): Promise<void> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtext('pod_rules'))`)
}

export async function findPodRule(
  db: Knex,
  { domain, port }: Pick<PodRule, 'domain' | 'port'>,
): Promise<PodRule | undefined> {
  return db('pod_rules')
    .where({ domain })
    .whereRaw('coalesce(port, 0) = ?', [port ?? 0])
    .first()
}

export async function findPodRuleById(db: Knex, id: number): Promise<PodRule | undefined> {
  return db('pod_rules').where({ id }).first()
}

export async function savePodRule(transaction: Knex.Transaction, rule: NewPodRule, at: Date): Promise<PodRule> {
  const [saved] = await transaction('pod_rules')
    .insert({ ...rule, createdAt: at, updatedAt: at })
    .onConflict(transaction.raw('(domain, coalesce(port, 0))'))
    .merge([
      ...(['subdomains', 'state', 'reason', 'publicComment', 'obfuscate', 'rejectMedia', 'rejectReports'] as const),
      ...(['until', 'source', 'batchId', 'updatedAt'] as const),
    ])
    .returning('*')
  return saved
}

export async function deletePodRules(transaction: Knex.Transaction, ids: readonly number[]): Promise<void> {
  await transaction('pod_rules')
    .whereIn('id', [...ids])
    .delete()
}

/** Deletes rules that are unchanged since a time. */
export async function deleteUnchangedPodRules(
  transaction: Knex.Transaction,
  ids: readonly number[],
  since: Date,
): Promise<void> {
  await transaction('pod_rules')
    .whereIn('id', [...ids])
    .where('updatedAt', '<=', since)
    .delete()
}

/** Rules whose time is over. */
export async function findEndedPodRules(db: Knex, limit: number): Promise<readonly PodRule[]> {
  return db('pod_rules').whereNotNull('until').where('until', '<=', db.raw('now()')).orderBy('id').limit(limit)
}

/** Lists rules, newest first. */
export async function listPodRules(
  db: Knex,
  { q, state, batchId }: PodRuleFilter,
  page: IdPage,
): Promise<ListPage<ListedPodRule>> {
  const query = db('pod_rules').select('pod_rules.*', db.raw(KNOWN_PODS_SQL))
  if (q !== undefined) query.whereLike('domain', `%${escapeLike(q)}%`)
  if (state !== undefined) query.where({ state })
  if (batchId !== undefined) query.where({ batchId })
  return readIdPage<ListedPodRule>(query, page)
}

export async function countKnownPods(db: Knex, ruleId: number): Promise<number> {
  const { count } = await queryRow<{ readonly count: number }>(
    db,
    `select count(*)::integer as count from pods join pod_rules on ${POD_IS_WITHIN_SQL} where pod_rules.id = ?`,
    [ruleId],
  )
  return count
}

/** Rules for a host: the one that decides, with the longest domain, first. */
export async function listRulesOfHost(
  db: Knex,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<readonly ListedPodRule[]> {
  return db('pod_rules')
    .select('pod_rules.*', db.raw(KNOWN_PODS_SQL))
    .whereRaw('pod_rules.domain = any(pod_domains(cast(:host as text)))', { host })
    .whereRaw('(pod_rules.subdomains or (pod_domains(cast(:host as text)))[1] = pod_rules.domain)', { host })
    .andWhereRaw('(pod_rules.port is null or pod_rules.port = ?)', [port])
    .orderByRaw('length(domain) desc, port nulls last')
}

/** All rules by domain, for the export. */
export async function readPodRules(db: Knex, states: readonly PodRuleState[]): Promise<readonly PodRule[]> {
  return db('pod_rules')
    .whereIn('state', [...states])
    .orderBy(['domain', { column: 'port', nulls: 'first' }])
}

/**
 * Brings the columns of the known pods in line with the rules; returns how many pods have changed. Deliveries to pods that are blocked now
 * are given up, and those of the last 14 days to pods that are no longer blocked are revived.
 */
export async function applyPodRules(transaction: Knex.Transaction): Promise<AppliedPodRules> {
  const rows = await queryRows<{ readonly id: number; readonly wasBlocked: boolean; readonly isBlocked: boolean }>(
    transaction,
    APPLIED_RULES_SQL,
  )
  const blocked = rows.filter(({ wasBlocked, isBlocked }) => isBlocked && !wasBlocked).map(({ id }) => id)
  const unblocked = rows.filter(({ wasBlocked, isBlocked }) => wasBlocked && !isBlocked).map(({ id }) => id)
  return { pods: rows.length, blocked, unblocked }
}

export interface AppliedPodRules {
  readonly pods: number
  readonly blocked: readonly number[]
  readonly unblocked: readonly number[]
}

const APPLIED_RULES_SQL = `
  with ruled as materialized (
    select id, blocked_at, limited_at, coalesce(pod_rule_state(host, port), 'normal') as state from pods
  ), changed as materialized (
    select pods.id, ruled.state, ruled.blocked_at is not null as was_blocked
    from ruled join pods using (id)
    where (ruled.state = 'blocked') is distinct from (pods.blocked_at is not null)
      or (ruled.state = 'limited') is distinct from (pods.limited_at is not null)
    order by pods.id
    for no key update of pods
  )
  update pods set
    blocked_at = case when changed.state = 'blocked' then coalesce(pods.blocked_at, ${NOW_SQL}) end,
    limited_at = case when changed.state = 'limited' then coalesce(pods.limited_at, ${NOW_SQL}) end
  from changed
  where pods.id = changed.id
  returning pods.id, changed.was_blocked as "wasBlocked", changed.state = 'blocked' as "isBlocked"`

/** Gives up the waiting deliveries to these pods, except those that blocked pods still receive. */
export async function giveUpDeliveriesToBlocked(
  transaction: Knex.Transaction,
  podIds: readonly number[],
): Promise<void> {
  if (podIds.length === 0) return
  await transaction.raw(
    `update deliveries set state = 'dead', died_at = now(), last_fault = 'pod_blocked'
     from outbound_messages as messages
     where deliveries.pod_id = any(?) and deliveries.state = 'waiting'
       and messages.id = deliveries.message_id and not ${EXEMPT_FROM_BLOCKS_SQL}`,
    [[...podIds]],
  )
}
