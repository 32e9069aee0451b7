import type { Knex } from 'knex'
import {
  type CleanableItem,
  type ClusterRow,
  findCluster,
  listCleanableItems,
  listClusterAuthors,
} from '../../../persistence/moderation/clusters.js'
import type { FilterRule } from '../../../persistence/moderation/filters.js'
import { previewPods } from '../../../persistence/moderation/pod-preview.js'
import { findPodRule } from '../../../persistence/moderation/pod-rules.js'
import { splitAddress } from '../../../protocol/address.js'
import { findMentions } from '../../../protocol/mentions.js'
import type { Services } from '../../../services/services.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'
import { readFilterRule } from '../filters/filters.js'
import { normalForm } from '../filters/normal-form.js'
import { shownText } from '../filters/shown-text.js'
import { MODERATION_LIMITS } from '../limits.js'
import { type RuleDomain, readRuleDomain } from '../pods/rule-domain.js'
import { clusterNotFound, type ShownAuthor, withProposal } from './clusters.js'

/** The parts of a cleaning. */
export interface CleanParts {
  /** Hides all items. */
  readonly hide: boolean
  /** Removes and retracts the items that a local person may retract. */
  readonly remove: boolean
  /** Adds a filter that hides later content with the key. */
  readonly filter: boolean
  /** The action on the ticked authors. No local author is blocked: `block` silences them, `lock` locks them and blocks the others. */
  readonly authors: 'none' | 'silence' | 'block' | 'lock'
  /** A rule for the pods of the ticked authors. It leaves out pods with contacts of local users, and pods with a rule. */
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

export interface CleanPlan {
  readonly hidden: readonly CleanableItem[]
  readonly removed: readonly CleanableItem[]
  readonly filter: FilterRule | undefined
  readonly rules: readonly RuleDomain[]
  readonly restricted: readonly ShownAuthor[]
  /** Items and authors that the work goes through. */
  readonly total: number
}

/** The effects of a cleaning. */
export async function previewCleaning(
  services: Pick<Services, 'config' | 'db' | 'now'>,
  actor: Actor,
  id: number,
  parts: CleanParts,
): Promise<CleanPreview> {
  requirePower(actor, 'moderation')
  const cluster = await findCluster(services.db, id)
  if (cluster === undefined) throw clusterNotFound()
  return previewOf(await planCleaning(services, services.db, cluster, parts))
}

export async function planCleaning(
  services: Pick<Services, 'config' | 'now'>,
  db: Knex,
  cluster: ClusterRow,
  parts: CleanParts,
): Promise<CleanPlan> {
  const { hide, remove, filter, except } = parts
  const exceptedGuids = new Set(except)
  const items = await listCleanableItems(db, cluster.id, { except, limit: MODERATION_LIMITS.clusterItems })
  const retractable = remove ? newestFirst(items.filter(({ isRetractable }) => isRetractable)) : []
  const removedItems = retractable.slice(0, MODERATION_LIMITS.removedPerCleaning)
  const isRemoved = new Set(removedItems)
  const selected = await selectedAuthors(services, db, cluster, exceptedGuids)
  const restricted = parts.authors === 'none' ? [] : selected
  return {
    hidden: hide ? items.filter((item) => !item.isHidden && !isRemoved.has(item)) : [],
    removed: removedItems,
    filter: filter ? filterOf(cluster) : undefined,
    rules: parts.pods === 'none' ? [] : await rulesFor(services, db, selected),
    restricted,
    total: (hide ? items.length : removedItems.length) + restricted.length,
  }
}

function newestFirst(items: readonly CleanableItem[]): readonly CleanableItem[] {
  return items.toSorted((one, other) => other.at.getTime() - one.at.getTime() || other.contentId - one.contentId)
}

export function previewOf({ hidden, removed, filter, rules, restricted }: CleanPlan): CleanPreview {
  return {
    hide: hidden.length,
    remove: removed.length,
    filter: filter && { kind: filter.kind, value: filter.value },
    people: new Set([...hidden, ...removed].map(({ authorId }) => authorId)).size,
    authors: restricted.length,
    pods: rules.map(({ domain }) => domain),
  }
}

/** Returns the selected authors except moderators, admins and the account of the podmin. */
async function selectedAuthors(
  { now, config }: Pick<Services, 'config' | 'now'>,
  db: Knex,
  { id }: ClusterRow,
  excepted: ReadonlySet<string>,
): Promise<readonly ShownAuthor[]> {
  return (await listClusterAuthors(db, id, MODERATION_LIMITS.clusterAuthors))
    .map((author) => withProposal(author, now()))
    .filter(({ isProposed, isStaff, guid }) => isProposed && !isStaff && !excepted.has(guid))
    .filter(({ address }) => address !== `${config.podminAccount}@${config.host}`)
}

/** The pods of the selected authors. A pod of which a local user has contacts is left to a decision of its own. */
async function rulesFor(
  { config }: Pick<Services, 'config'>,
  db: Knex,
  selected: readonly ShownAuthor[],
): Promise<readonly RuleDomain[]> {
  const remote = selected.filter(({ isLocal }) => !isLocal)
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
function ruleDomainOf(config: Services['config'], host: string): RuleDomain | undefined {
  try {
    return readRuleDomain(config, { domain: host.replace(/:\d+$/, '') })
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
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

const MIN_PHRASE_CHARACTERS = 12

/** The longest part of a text, as it is shown, without mentions, numbers and links: copies of the text have it in common. */
function constantPart(text: string): string | undefined {
  const textWithoutMentions = findMentions(text).reduceRight(
    (rest, { start, end }) => `${rest.slice(0, start)}\n${rest.slice(end)}`,
    text,
  )
  const parts = shownText(textWithoutMentions)
    .split(/\n|[\p{N}@{}]+|https?:\S*/u)
    .map((part) => normalForm(part).trim().slice(0, MODERATION_LIMITS.filterCharacters).trim())
  const longest = parts.reduce((best, part) => (part.length > best.length ? part : best), '')
  return longest.length < MIN_PHRASE_CHARACTERS ? undefined : longest
}
