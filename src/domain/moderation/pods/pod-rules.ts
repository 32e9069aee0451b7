import type { Knex } from 'knex'
import { startDeliveriesAfterCommit } from '../../../jobs/outbox/start-deliveries.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import type { PodHost } from '../../../persistence/models/remote-pod.js'
import { doRulesEndRelations, type PodPreview, previewPods } from '../../../persistence/moderation/pod-preview.js'
import {
  type AppliedPodRules,
  applyPodRules,
  countKnownPods,
  deletePodRules,
  findEndedPodRules,
  findPodRule,
  findPodRuleById,
  giveUpDeliveriesToBlocked,
  type ListedPodRule,
  listPodRules,
  listRulesOfHost,
  lockPodRules,
  type NewPodRule,
  type PodRule,
  type PodRuleFilter,
  savePodRule,
} from '../../../persistence/moderation/pod-rules.js'
import { reviveDeliveriesOfPods } from '../../../persistence/outbound/dead-deliveries.js'
import type { IdPage, ListPage } from '../../../persistence/sql/id-page.js'
import { formatAddressHost } from '../../../protocol/address.js'
import { isWithinLength } from '../../../protocol/values.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import { findTextFault } from '../../posts/texts.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower, SYSTEM_ACTOR } from '../actor.js'
import { MODERATION_LIMITS } from '../limits.js'
import {
  type ActionOptions,
  type ActionOutcome,
  type RecordedAction,
  recordAction,
  requireFutureEnd,
  requireReason,
} from '../record-action.js'
import { startRestricting } from './restrict-pod-people.js'
import { nameOfRule, type RuleDomain, type RuleDomainInput, readRuleDomain } from './rule-domain.js'

export interface PodRuleInput {
  readonly state: PodRule['state']
  readonly publicComment?: string | undefined
  readonly obfuscate?: boolean | undefined
  /** Null: without an end. */
  readonly until?: Date | null | undefined
}

export interface PodRuleOptions extends ActionOptions {
  /**
   * The domain, or the name with the port: required for a change that ends relations of local users, by a block or by the end of an
   * exception below a block.
   */
  readonly confirm?: string | undefined
}

export interface PodRuleOutcome extends ActionOutcome {
  readonly rule: ListedPodRule
  /** The rule is new. */
  readonly created: boolean
}

/** Creates a rule for a domain, or changes the existing one. It is in force immediately, for known and for later pods. */
export async function setPodRule(
  services: ModerationServices,
  actor: Actor,
  input: RuleDomainInput & PodRuleInput,
  options: PodRuleOptions,
): Promise<PodRuleOutcome> {
  requirePower(actor, 'moderation')
  const domain = readRuleDomain(services.config, input)
  return inRequestTransaction(services, async (transaction) => {
    await lockPodRules(transaction)
    const before = await findPodRule(transaction, domain)
    return saveRule({ services, transaction, actor }, { before, domain, input }, options)
  })
}

export interface PodRuleChange extends Partial<PodRuleInput> {
  readonly id: number
  readonly subdomains?: boolean | undefined
}

/** Changes a rule. */
export async function changePodRule(
  services: ModerationServices,
  actor: Actor,
  { id, ...input }: PodRuleChange,
  options: PodRuleOptions,
): Promise<PodRuleOutcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    await lockPodRules(transaction)
    const before = await requireRule(transaction, id)
    const { domain, port } = before
    const changedDomain = { domain, port, subdomains: input.subdomains ?? before.subdomains }
    return saveRule(
      { services, transaction, actor },
      { before, domain: changedDomain, input: { ...input, state: input.state ?? before.state } },
      options,
    )
  })
}

/** The transaction that changes a rule, and the person who changes it. */
interface RuleScope {
  readonly services: ModerationServices
  readonly transaction: Knex.Transaction
  readonly actor: Actor
}

async function saveRule(
  { services, transaction, actor }: RuleScope,
  {
    before,
    domain,
    input,
  }: { readonly before: PodRule | undefined; readonly domain: RuleDomain; readonly input: PodRuleInput },
  options: PodRuleOptions,
): Promise<PodRuleOutcome> {
  const reason = requireReason(options)
  const rule: NewPodRule = {
    ...domain,
    state: input.state,
    reason,
    publicComment: readComment(input.publicComment ?? before?.publicComment ?? ''),
    obfuscate: input.obfuscate ?? before?.obfuscate ?? false,
    until: readEnd(services, input.until === undefined ? (before?.until ?? null) : input.until),
    source: 'manual',
    batchId: null,
    createdBy: before?.createdBy ?? actor.name,
    rejectMedia: before?.rejectMedia ?? false,
    rejectReports: before?.rejectReports ?? false,
  }
  if (before !== undefined && isSameRule(before, rule)) {
    return { changed: false, created: false, rule: await withKnownPods(transaction, before) }
  }
  const savedRule = await savePodRule(transaction, rule, services.now())
  const changedDomain = { ...domain, subdomains: domain.subdomains || (before?.subdomains ?? false) }
  await requireConfirmedBlock(transaction, changedDomain, options)
  await enforcePodRules(services, transaction)
  const action = await recordAction(services, transaction, actor, {
    kind: 'pod_rule',
    target: targetOf(savedRule),
    reason,
    caseId: options.caseId,
    undo: { possible: false },
    ...(before && { before: auditValues(before) }),
    after: auditValues(savedRule),
  })
  return { changed: true, created: before === undefined, rule: await withKnownPods(transaction, savedRule), action }
}

/** Deletes a rule. Wider rules count again, and pods without one have no restriction. */
export async function deletePodRule(
  services: ModerationServices,
  actor: Actor,
  id: number,
  options: PodRuleOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    await lockPodRules(transaction)
    const rule = await requireRule(transaction, id)
    const reason = requireReason(options)
    return { changed: true, action: await removeRule({ services, transaction, actor }, rule, { ...options, reason }) }
  })
}

/** Deletes the rule of exactly this domain and port. */
export async function unsetPodRule(
  services: ModerationServices,
  actor: Actor,
  input: RuleDomainInput,
  options: PodRuleOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'moderation')
  const domain = readRuleDomain(services.config, input)
  return inRequestTransaction(services, async (transaction) => {
    await lockPodRules(transaction)
    const rule = await findPodRule(transaction, domain)
    if (rule === undefined) return { changed: false }
    const reason = requireReason(options)
    return { changed: true, action: await removeRule({ services, transaction, actor }, rule, { ...options, reason }) }
  })
}

async function removeRule(
  { services, transaction, actor }: RuleScope,
  rule: PodRule,
  { reason, caseId, confirm }: PodRuleOptions & { readonly reason: string },
) {
  await deletePodRules(transaction, [rule.id])
  if (actor !== SYSTEM_ACTOR) await requireConfirmedBlock(transaction, rule, { confirm })
  await enforcePodRules(services, transaction)
  return recordAction(services, transaction, actor, {
    kind: 'pod_rule.delete',
    target: targetOf(rule),
    reason,
    caseId,
    undo: { possible: false },
    before: auditValues(rule),
  })
}

/**
 * Blocks the pods at a host and its subdomains. A port other than 443 limits the rule to this port. Without a confirmation, a block that
 * ends relations of local users is refused.
 */
export async function blockHost(
  services: ModerationServices,
  actor: Actor,
  { host, port }: PodHost,
  { isConfirmed, ...options }: ActionOptions & { readonly isConfirmed: boolean },
): Promise<PodRuleOutcome> {
  const rule = { ...ruleDomainOf({ host, port }), state: 'blocked' } as const
  const confirm = isConfirmed ? readRuleDomain(services.config, rule).domain : undefined
  return setPodRule(services, actor, rule, { ...options, confirm })
}

/** The domain of the rule that `blockHost` makes. */
export function ruleDomainOf({ host, port }: PodHost): RuleDomainInput {
  return { domain: host, port: port === 443 ? null : port }
}

/** Ends the block of a host: deletes its own rule, and creates an exception if a wider rule still blocks it. */
export async function unblockHost(
  services: ModerationServices,
  actor: Actor,
  { host, port }: PodHost,
  options: ActionOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'moderation')
  const { domain } = readRuleDomain(services.config, { domain: host })
  return inRequestTransaction(services, async (transaction) => {
    await lockPodRules(transaction)
    const reason = requireReason(options)
    const rules = await listRulesOfHost(transaction, { host, port })
    if (rules[0]?.state !== 'blocked') return { changed: false }
    const ownRules = rules.filter((rule) => rule.domain === domain && rule.state === 'blocked')
    let action: RecordedAction | undefined
    for (const rule of ownRules)
      action = await removeRule({ services, transaction, actor }, rule, { ...options, reason })
    if (rules.find((rule) => !ownRules.includes(rule))?.state === 'blocked') {
      const exception = { domain, subdomains: false, port: port === 443 ? null : port }
      const exceptionRule = { before: undefined, domain: exception, input: { state: 'normal' } as const }
      return saveRule({ services, transaction, actor }, exceptionRule, options)
    }
    return { changed: true, ...(action && { action }) }
  })
}

/** Deletes the rules whose time is over, each with an audit entry of the system; returns their number. */
export async function endPodRules(services: ModerationServices): Promise<number> {
  if ((await findEndedPodRules(services.db, 1)).length === 0) return 0
  return inRequestTransaction(services, async (transaction) => {
    await lockPodRules(transaction)
    const endedRules = await findEndedPodRules(transaction, MODERATION_LIMITS.endedRulesPerBatch)
    for (const rule of endedRules)
      await removeRule({ services, transaction, actor: SYSTEM_ACTOR }, rule, { reason: 'The rule has ended.' })
    return endedRules.length
  })
}

export async function listRules(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  filter: PodRuleFilter,
  page: IdPage,
): Promise<ListPage<ListedPodRule>> {
  requirePower(actor, 'moderation')
  return listPodRules(db, filter, page)
}

export async function readRule({ db }: Pick<Services, 'db'>, actor: Actor, id: number): Promise<ListedPodRule> {
  requirePower(actor, 'moderation')
  return withKnownPods(db, await requireRule(db, id))
}

/** Counts what a rule for the domain would concern. */
export async function previewPodRule(
  { db, config }: Pick<Services, 'config' | 'db'>,
  actor: Actor,
  input: RuleDomainInput,
): Promise<RuleDomain & PodPreview> {
  requirePower(actor, 'moderation')
  const domain = readRuleDomain(config, input)
  return { ...domain, ...(await previewPods(db, domain)) }
}

/** Brings pods and deliveries in line with the rules, in the transaction of their change. */
export async function enforcePodRules(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
): Promise<AppliedPodRules> {
  const podChanges = await applyPodRules(transaction)
  await startRestricting(services, transaction)
  await giveUpDeliveriesToBlocked(transaction, podChanges.blocked)
  await reviveDeliveriesOfPods(transaction, podChanges.unblocked, 'pod_blocked')
  startDeliveriesAfterCommit(
    services,
    transaction,
    podChanges.unblocked.map((podId) => ({ podId, isProven: false })),
  )
  return podChanges
}

/** Refuses a change of rules that is stored but not applied yet, if it blocks people with relations without a confirmation. */
async function requireConfirmedBlock(
  transaction: Knex.Transaction,
  { domain, subdomains, port }: RuleDomain,
  { confirm }: Pick<PodRuleOptions, 'confirm'>,
): Promise<void> {
  const rule = { domain, subdomains, port }
  if (confirm === domain || confirm === nameOfRule(rule) || !(await doRulesEndRelations(transaction, rule))) return
  const preview = await previewPods(transaction, rule)
  throw new Refusal('confirmation_needed', `Set confirm to ${rule.domain}: local users have relations there.`, {
    details: { preview: previewDetails({ ...rule, ...preview }) },
  })
}

async function requireRule(db: Knex, id: number): Promise<PodRule> {
  const rule = await findPodRuleById(db, id)
  if (rule === undefined) throw new Refusal('rule_not_found', 'There is no rule with this number.')
  return rule
}

async function withKnownPods(db: Knex, rule: PodRule): Promise<ListedPodRule> {
  return { ...rule, knownPods: await countKnownPods(db, rule.id) }
}

function isSameRule(one: PodRule, other: NewPodRule): boolean {
  return (
    one.state === other.state &&
    one.subdomains === other.subdomains &&
    one.publicComment === other.publicComment &&
    one.obfuscate === other.obfuscate &&
    one.until?.getTime() === other.until?.getTime()
  )
}

function readComment(text: string): string {
  const comment = text.trim()
  if (
    !isWithinLength(comment, MODERATION_LIMITS.reasonCharacters) ||
    (comment !== '' && findTextFault(comment) !== undefined)
  ) {
    throw new Refusal(
      'public_comment_invalid',
      `A comment must have at most ${MODERATION_LIMITS.reasonCharacters} characters.`,
    )
  }
  return comment
}

function readEnd(services: Pick<Services, 'now'>, until: Date | null): Date | null {
  requireFutureEnd(services, until)
  return until
}

function targetOf(rule: PodRule) {
  return { type: 'pod_rule', guid: rule.domain, label: nameOfRule(rule) }
}

function auditValues({ state, subdomains, port, publicComment, until }: PodRule) {
  return { state, subdomains, port, public_comment: publicComment, until: until?.toISOString() ?? null }
}

/** A preview with the field names of the API, which the details of a refusal use too. */
export function previewDetails(preview: RuleDomain & PodPreview) {
  const { domain, subdomains, port, pods, people, contacts, posts, comments, photos, conversations, cases } = preview
  return {
    domain,
    subdomains,
    port,
    pods: pods.map(({ people: count, ...pod }) => ({ host: formatAddressHost(pod), people: count })),
    pods_met: preview.knownPods,
    people,
    local_users: preview.localUsers,
    local_followers: preview.localFollowers,
    remote_followers: preview.remoteFollowers,
    contacts,
    posts,
    comments,
    photos,
    conversations,
    deliveries_waiting: preview.deliveriesWaiting,
    cases,
  }
}
