import type { Knex } from 'knex'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import {
  deleteFilter,
  FILTER_FIELDS,
  type FilterDay,
  type FilterHit,
  type FilterRule,
  findFilter,
  insertFilter,
  type ListedFilter,
  listFilters,
  lockAndCountFilters,
  lockFilter,
  readFilterHits,
  type StoredFilter,
  updateFilter,
} from '../../../persistence/moderation/filters.js'
import { type BackgroundTask, findLatestTask } from '../../../persistence/operations/background-tasks.js'
import type { IdPage, ListPage } from '../../../persistence/sql/id-page.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import type { Power } from '../../accounts/role-powers.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'
import { MODERATION_LIMITS } from '../limits.js'
import {
  type ActionKind,
  type ActionOptions,
  type ActionOutcome,
  recordAction,
  requireReason,
} from '../record-action.js'
import { reloadFilters } from './active-filters.js'
import { readFilterValue } from './filter-values.js'

/** A filter as it is given. What is missing has its default, or stays as it is. */
export type FilterInput = Partial<FilterRule>
export type NewFilter = FilterInput & Pick<FilterRule, 'kind' | 'value' | 'action'>

export interface FilterOutcome extends ActionOutcome {
  readonly filter: ListedFilter
}

/** The kind of operations that apply a filter to stored content. */
export const APPLY_FILTER = 'filter.apply' as const

export interface FilterDetails extends ListedFilter {
  /** The filter is being applied to stored content, or this has failed. */
  readonly task: BackgroundTask | undefined
  readonly days: readonly FilterDay[]
  readonly latest: readonly FilterHit[]
}

/** The rule that an input means. Throws `filter_invalid` for a value that does not fit its kind. */
export function readFilterRule(input: NewFilter): FilterRule {
  const { kind, value, action } = input
  const fields = kind === 'tag' ? (['tag'] as const) : [...new Set(input.fields ?? FILTER_FIELDS)]
  if (fields.length === 0) throw new Refusal('filter_invalid', 'A filter needs at least one field.')
  return {
    kind,
    value: readFilterValue(kind, value),
    fields,
    origin: input.origin ?? 'both',
    accountAgeDays: input.accountAgeDays ?? null,
    exemptFollowed: input.exemptFollowed ?? true,
    isPrivate: input.isPrivate ?? false,
    action,
    state: input.state ?? 'trial',
  }
}

/** Lists filters, newest first. */
export async function listModerationFilters(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  page: IdPage,
): Promise<ListPage<ListedFilter>> {
  requirePower(actor, 'moderation')
  return listFilters(db, page)
}

/** Reads a filter with its latest hits and the work in the background. */
export async function readModerationFilter(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
): Promise<FilterDetails> {
  requirePower(actor, 'moderation')
  const filter = await findFilter(db, id)
  if (filter === undefined) throw filterNotFound()
  const latest = await findLatestTask(db, [APPLY_FILTER], String(id))
  const task = latest?.state === 'done' ? undefined : latest
  return { ...filter, ...(await readFilterHits(db, id, MODERATION_LIMITS.hitsStored)), task }
}

export async function addFilter(
  services: ModerationServices,
  actor: Actor,
  input: NewFilter,
  options: ActionOptions,
): Promise<FilterOutcome> {
  requirePower(actor, 'moderation')
  const rule = readFilterRule(input)
  requirePower(actor, powerForFilter(rule))
  const reason = requireReason(options)
  const outcome = await inRequestTransaction(services, async (transaction) => {
    if ((await lockAndCountFilters(transaction)) >= MODERATION_LIMITS.filters) {
      throw new Refusal('too_many_filters', `There are ${MODERATION_LIMITS.filters} filters, and no more are possible.`)
    }
    const id = await insertFilter(transaction, rule, { createdBy: actor.name, at: services.now() })
    const filter = await requireFilter(transaction, id)
    const action = await recordFilterAction(services, transaction, actor, {
      kind: 'filter.add',
      filter,
      reason,
      options,
    })
    return { changed: true, filter, action }
  })
  await reloadFilters(services)
  return outcome
}

export async function changeFilter(
  services: ModerationServices,
  actor: Actor,
  { id, ...changes }: FilterInput & { readonly id: number },
  options: ActionOptions,
): Promise<FilterOutcome> {
  requirePower(actor, 'moderation')
  const outcome = await inRequestTransaction(services, async (transaction) => {
    const before = await lockFilter(transaction, id)
    if (before === undefined) throw filterNotFound()
    const rule = readFilterRule({ ...before, ...definedOf(changes) })
    requirePower(actor, powerForFilter(before))
    requirePower(actor, powerForFilter(rule))
    const reason = requireReason(options)
    if (isSameRule(before, rule)) return { changed: false, filter: await requireFilter(transaction, id) }
    await updateFilter(transaction, id, rule, services.now())
    const filter = await requireFilter(transaction, id)
    const kind = 'filter.change'
    const action = await recordFilterAction(services, transaction, actor, { kind, filter, before, reason, options })
    return { changed: true, filter, action }
  })
  await reloadFilters(services)
  return outcome
}

export async function removeFilter(
  services: ModerationServices,
  actor: Actor,
  id: number,
  options: ActionOptions,
): Promise<FilterOutcome> {
  requirePower(actor, 'moderation')
  const outcome = await inRequestTransaction(services, async (transaction) => {
    const before = await lockFilter(transaction, id)
    if (before === undefined) throw filterNotFound()
    requirePower(actor, powerForFilter(before))
    const reason = requireReason(options)
    const filter = await requireFilter(transaction, id)
    await deleteFilter(transaction, id)
    const kind = 'filter.remove'
    const action = await recordFilterAction(services, transaction, actor, { kind, filter, before, reason, options })
    return { changed: true, filter, action }
  })
  await reloadFilters(services)
  return outcome
}

/** Only admins reject content and read private content. */
export function powerForFilter({ action, isPrivate }: Pick<FilterRule, 'action' | 'isPrivate'>): Power {
  return action === 'reject' || isPrivate ? 'administration' : 'moderation'
}

async function recordFilterAction(
  services: ModerationServices,
  transaction: Knex.Transaction,
  actor: Actor,
  change: {
    readonly kind: ActionKind
    readonly filter: StoredFilter
    readonly before?: StoredFilter
    readonly reason: string
    readonly options: ActionOptions
  },
) {
  const { kind, filter, before, reason, options } = change
  return recordAction(services, transaction, actor, {
    kind,
    target: { type: 'filter', guid: String(filter.id), label: `${filter.kind}: ${filter.value}` },
    reason,
    caseId: options.caseId,
    undo: { possible: false },
    ...(before && { before: { ...ruleOf(before) } }),
    ...(kind !== 'filter.remove' && { after: { ...ruleOf(filter) } }),
  })
}

function ruleOf(filter: StoredFilter): FilterRule {
  const { kind, value, fields, origin, accountAgeDays, exemptFollowed, isPrivate, action, state } = filter
  return { kind, value, fields, origin, accountAgeDays, exemptFollowed, isPrivate, action, state }
}

function isSameRule(filter: StoredFilter, rule: FilterRule): boolean {
  return JSON.stringify(ruleOf(filter)) === JSON.stringify(rule)
}

function definedOf(input: FilterInput): FilterInput {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
}

async function requireFilter(transaction: Knex.Transaction, id: number): Promise<ListedFilter> {
  const filter = await findFilter(transaction, id)
  if (filter === undefined) throw filterNotFound()
  return filter
}

export function filterNotFound(): Refusal {
  return new Refusal('filter_not_found', 'There is no filter with this number.')
}
