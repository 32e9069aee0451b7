import type { Knex } from 'knex'
import { inChunks } from '../../../jobs/chunks.js'
import { inTransaction } from '../../../persistence/database/transactions.js'
import type { ActionRow } from '../../../persistence/moderation/actions.js'
import {
  type ClusterItem,
  type ClusterRow,
  changeClusterState,
  closeCaseOfCluster,
  findCluster,
  groupContentIds,
  listClusterAuthors,
  listClusterItems,
  reopenCluster,
} from '../../../persistence/moderation/clusters.js'
import { deleteUnchangedFilter, type FilterRule, insertFilter } from '../../../persistence/moderation/filters.js'
import { hideContentRows, showContentOfAction } from '../../../persistence/moderation/hidden-content.js'
import { previewPods } from '../../../persistence/moderation/pod-preview.js'
import {
  deleteUnchangedPodRules,
  findPodRule,
  lockPodRules,
  savePodRule,
} from '../../../persistence/moderation/pod-rules.js'
import { liftRestrictions, restrictPeople } from '../../../persistence/moderation/restrictions.js'
import type { Pod } from '../../../pod/pod.js'
import { splitAddress } from '../../../protocol/address.js'
import { findMentions } from '../../../protocol/mentions.js'
import { retractEntity } from '../../posts/retract.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'
import { reloadFilters } from '../filters/active-filters.js'
import { readFilterRule } from '../filters/filters.js'
import { normalForm } from '../filters/normal-form.js'
import { findContent } from '../find-content.js'
import { followUpRestrictions } from '../follow-up-restrictions.js'
import { MODERATION_LIMITS } from '../limits.js'
import { lockMembers, unlockUsers } from '../lock-members.js'
import { enforcePodRules } from '../pods/pod-rules.js'
import { type RuleDomain, readRuleDomain } from '../pods/rule-domain.js'
import { type ActionOptions, type ActionOutcome, recordAction, requireReason } from '../record-action.js'
import { clusterNotFound, lockOpenCluster, type ShownAuthor, withProposal } from './clusters.js'

type CleanPod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'requestContext' | 'config'>

/** The parts of a cleaning. */
export interface CleanParts {
  /** Hides all items. */
  readonly hide: boolean
  /** Removes and retracts the items that a local person may retract. */
  readonly remove: boolean
  /** Adds a filter that hides later content with the key. */
  readonly filter: boolean
  /** What happens to the ticked authors. No local author is blocked: `block` silences them, `lock` locks them and blocks the others. */
  readonly authors: 'none' | 'silence' | 'block' | 'lock'
  /** A rule for the pods of the ticked authors. Not for pods of which a local user has contacts, and pods that have a rule. */
  readonly pods: 'none' | 'limited' | 'blocked'
  /** Guids of items, and of people whose items stay. */
  readonly except: readonly string[]
}

export interface CleanPreview {
  readonly hide: number
  readonly remove: number
  /** Undefined: no filter was requested, or none can find the key. */
  readonly filter: Pick<FilterRule, 'kind' | 'value'> | undefined
  readonly people: number
  /** The ticked authors who are restricted. */
  readonly authors: number
  /** The domains of the new rules. */
  readonly pods: readonly string[]
}

export interface CleanOutcome extends ActionOutcome {
  readonly preview: CleanPreview
}

interface CleanPlan {
  readonly hidden: readonly ClusterItem[]
  readonly removed: readonly ClusterItem[]
  readonly filter: FilterRule | undefined
  readonly rules: readonly RuleDomain[]
  readonly restricted: readonly ShownAuthor[]
}
/** What a cleaning would do. */
export async function previewCleaning(
  pod: Pick<Pod, 'db' | 'config' | 'now'>,
  actor: Actor,
  id: number,
  parts: CleanParts,
): Promise<CleanPreview> {
  requirePower(actor, 'moderation')
  const cluster = await findCluster(pod.db, id)
  if (cluster === undefined) throw clusterNotFound()
  return previewOf(await planCleaning(pod, pod.db, cluster, parts))
}

/** Cleans a cluster with one action and one audit entry. The undo shows what was hidden and removes the filter; retractions stay. */
export async function cleanCluster(
  pod: CleanPod,
  actor: Actor,
  id: number,
  { confirm, ...parts }: CleanParts & { readonly confirm?: string | undefined },
  options: ActionOptions,
): Promise<CleanOutcome> {
  requirePower(actor, 'moderation')
  const outcome = await inTransaction(pod, async (transaction) => {
    const cluster = await lockOpenCluster(transaction, id)
    const reason = requireReason(options)
    const plan = await planCleaning(pod, transaction, cluster, parts)
    const preview = previewOf(plan)
    const isLarge = preview.hide + preview.remove > MODERATION_LIMITS.cleanedByModerator
    const power = isLarge || preview.pods.length > 1 ? 'administration' : 'moderation'
    requirePower(actor, power)
    requireConfirmation(preview, confirm)

    const filterId = plan.filter && (await insertFilter(transaction, plan.filter, createdBy(pod, actor)))
    const ruleIds = await addPodRules(pod, transaction, plan.rules, {
      state: parts.pods,
      reason,
      createdBy: actor.name,
    })
    const lockedIds =
      parts.authors === 'lock' ? await lockMembers(pod, transaction, plan.restricted.filter(isLocal)) : []
    await changeClusterState(transaction, id, 'cleaned')
    const action = await recordAction(pod, transaction, actor, {
      kind: 'cluster.clean',
      target: { type: 'cluster', guid: String(id), label: `${cluster.kind}: ${cluster.label}` },
      reason,
      caseId: options.caseId ?? cluster.caseId ?? undefined,
      undo: { possible: true, ...(preview.remove > 0 && { loses: `${preview.remove} retracted items` }) },
      power,
      after: {
        hidden: preview.hide,
        removed: preview.remove,
        filter: filterId ?? null,
        pods: preview.pods,
        authors: preview.authors,
      },
      details: {
        filterId: filterId ?? null,
        ruleIds,
        lockedIds,
        authorIds: plan.restricted.map((author) => author.id),
      },
      effect: async (actionId) => {
        await retractItems(pod, transaction, plan.removed)
        await hideContentRows(transaction, actionId, groupContentIds(plan.hidden))
        await restrictAuthors(pod, transaction, actionId, parts.authors, plan.restricted)
      },
    })
    await closeCaseOfCluster(transaction, cluster, { state: 'resolved', actorId: actor.userId, at: pod.now() })
    return { changed: true, action, preview }
  })
  if (outcome.preview.filter !== undefined) await reloadFilters(pod)
  return outcome
}

/** Shows what the cleaning has hidden, removes its filter and rules unless they were changed, and opens accounts and cluster again. */
export async function undoCleaning(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  { id, targetGuid, details, createdAt }: ActionRow,
): Promise<void> {
  await showContentOfAction(transaction, id)
  if (typeof details['filterId'] === 'number') await deleteUnchangedFilter(transaction, details['filterId'])
  const { ruleIds, authorIds, lockedIds } = details
  await unlockUsers(transaction, Array.isArray(lockedIds) ? lockedIds : [])
  for (const ids of inChunks(Array.isArray(authorIds) ? authorIds : [], PERSON_BATCH_SIZE)) {
    await followUpRestrictions(pod, transaction, await liftRestrictions(transaction, { source: 'action', id }, ids))
  }
  if (Array.isArray(ruleIds) && ruleIds.length > 0) {
    await lockPodRules(transaction)
    await deleteUnchangedPodRules(transaction, ruleIds, createdAt)
    await enforcePodRules(pod, transaction)
  }
  await reopenCluster(transaction, Number(targetGuid))
}

async function planCleaning(
  pod: Pick<Pod, 'config' | 'now'>,
  db: Knex,
  cluster: ClusterRow,
  parts: CleanParts,
): Promise<CleanPlan> {
  const { hide, remove, filter, except } = parts
  const excepted = new Set(except)
  const items = (await listClusterItems(db, cluster.id, MODERATION_LIMITS.clusterItems)).filter(
    ({ guid, authorGuid, isStaff }) => !isStaff && !excepted.has(guid) && !excepted.has(authorGuid),
  )
  const removed = remove ? items.filter(({ isEntitled }) => isEntitled).slice(0, MODERATION_LIMITS.removedAtOnce) : []
  const isRemoved = new Set(removed)
  const ticked = await tickedAuthors(pod, db, cluster, excepted)
  return {
    hidden: hide ? items.filter((item) => !item.isHidden && !isRemoved.has(item)) : [],
    removed,
    filter: filter ? filterOf(cluster) : undefined,
    rules: parts.pods === 'none' ? [] : await rulesFor(pod, db, ticked),
    restricted: parts.authors === 'none' ? [] : ticked,
  }
}

function previewOf({ hidden, removed, filter, rules, restricted }: CleanPlan): CleanPreview {
  return {
    hide: hidden.length,
    remove: removed.length,
    filter: filter && { kind: filter.kind, value: filter.value },
    people: new Set([...hidden, ...removed].map(({ authorId }) => authorId)).size,
    authors: restricted.length,
    pods: rules.map(({ domain }) => domain),
  }
}

function requireConfirmation(preview: CleanPreview, confirm: string | undefined): void {
  if (preview.remove < 2 || confirm === String(preview.remove)) return
  const { hide, remove, people, filter } = preview
  throw new Refusal('confirmation_needed', `Set confirm to ${remove}, the number of removed items.`, {
    details: { preview: { hide, remove, people, filter: filter ?? null } },
  })
}

/** Without moderators and admins, and without the account of the podmin. */
async function tickedAuthors(
  { now, config }: Pick<Pod, 'now' | 'config'>,
  db: Knex,
  { id }: ClusterRow,
  excepted: ReadonlySet<string>,
): Promise<readonly ShownAuthor[]> {
  return (await listClusterAuthors(db, id, MODERATION_LIMITS.clusterAuthors))
    .map((author) => withProposal(author, now()))
    .filter(({ isProposed, isStaff, guid }) => isProposed && !isStaff && !excepted.has(guid))
    .filter(({ address }) => address !== `${config.podminAccount}@${config.host}`)
}

function isLocal(author: ShownAuthor): boolean {
  return author.isLocal
}

async function restrictAuthors(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  id: number,
  kind: CleanParts['authors'],
  authors: readonly ShownAuthor[],
): Promise<void> {
  if (kind === 'none') return
  const source = { source: 'action', id } as const
  const local = kind === 'lock' ? [] : authors.filter(isLocal).map((author) => author.id)
  const remote = authors.filter((author) => !isLocal(author)).map((author) => author.id)
  const kindOfRemote = kind === 'lock' ? 'block' : kind
  for (const ids of inChunks(local, PERSON_BATCH_SIZE)) await restrictPeople(transaction, source, 'silence', ids)
  for (const ids of inChunks(remote, PERSON_BATCH_SIZE)) {
    await followUpRestrictions(pod, transaction, await restrictPeople(transaction, source, kindOfRemote, ids))
  }
}

const PERSON_BATCH_SIZE = 200

/** The pods of the ticked authors. A pod of which a local user has contacts is left to a decision of its own. */
async function rulesFor(
  { config }: Pick<Pod, 'config'>,
  db: Knex,
  ticked: readonly ShownAuthor[],
): Promise<readonly RuleDomain[]> {
  const remote = ticked.filter((author) => !isLocal(author))
  const hosts = new Set(remote.flatMap(({ address }) => splitAddress(address)?.host ?? []))
  const rules: RuleDomain[] = []
  for (const host of [...hosts].slice(0, MODERATION_LIMITS.clusterPods)) {
    const domain = ruleDomainOf(config, host)
    if (domain === undefined || (await findPodRule(db, domain)) !== undefined) continue
    if ((await previewPods(db, domain)).contacts === 0) rules.push(domain)
  }
  return rules
}

/** Undefined: this pod, or a host for which no rule is possible. */
function ruleDomainOf(config: Pod['config'], host: string): RuleDomain | undefined {
  try {
    return readRuleDomain(config, { domain: host.replace(/:\d+$/, '') })
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}

async function addPodRules(
  pod: Pick<Pod, 'jobs' | 'now'>,
  transaction: Knex.Transaction,
  domains: readonly RuleDomain[],
  {
    state,
    reason,
    createdBy: by,
  }: { readonly state: CleanParts['pods']; readonly reason: string; readonly createdBy: string },
): Promise<readonly number[]> {
  if (state === 'none' || domains.length === 0) return []
  await lockPodRules(transaction)
  const ids: number[] = []
  for (const domain of domains) {
    const rule = {
      ...domain,
      state,
      reason,
      publicComment: '',
      obfuscate: false,
      until: null,
      source: 'manual',
    } as const
    const more = { batchId: null, createdBy: by, rejectMedia: false, rejectReports: false }
    ids.push((await savePodRule(transaction, { ...rule, ...more }, pod.now())).id)
  }
  await enforcePodRules(pod, transaction)
  return ids
}

function createdBy(pod: Pick<Pod, 'now'>, { name }: Actor) {
  return { createdBy: name, at: pod.now() }
}

/** In the order of guids, as all transactions lock them. */
async function retractItems(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  items: readonly ClusterItem[],
): Promise<void> {
  for (const { type, guid } of items.toSorted((one, other) => (one.guid < other.guid ? -1 : 1))) {
    const content = await findContent(transaction, { type, guid })
    if (content?.retraction !== undefined) await retractEntity(pod, transaction, content.retraction)
  }
}

/** A filter that finds the key of a cluster. Mentions and photos have none. */
function filterOf({ kind, label }: ClusterRow): FilterRule | undefined {
  const common = { action: 'hide', state: 'active' } as const
  if (kind === 'link') {
    const value = label.slice(0, MODERATION_LIMITS.filterCharacters)
    return readFilterRule({ ...common, kind: 'link_prefix', value })
  }
  const value = kind === 'text' ? constantPart(label) : undefined
  return value === undefined ? undefined : readFilterRule({ ...common, kind: 'phrase', value })
}

const SHORTEST_PHRASE = 12

/** The longest part of a text without mentions, numbers and links: copies of the text have it in common. */
function constantPart(text: string): string | undefined {
  const cut = findMentions(text).reduceRight(
    (rest, { start, end }) => `${rest.slice(0, start)}\n${rest.slice(end)}`,
    text,
  )
  const parts = cut
    .split(/\n|[\p{N}@{}]+|https?:\S*/u)
    .map((part) => normalForm(part).trim().slice(0, MODERATION_LIMITS.filterCharacters).trim())
  const longest = parts.reduce((best, part) => (part.length > best.length ? part : best), '')
  return longest.length < SHORTEST_PHRASE ? undefined : longest
}
