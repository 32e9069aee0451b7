import {
  changeDeadLetters,
  DEAD_LETTERS_OF_CHUNK,
  type DeadLetterRange,
  type DeadLetterWork,
  findDeadLetterRange,
} from '../../jobs/dead-letters/change-dead-letters.js'
import { countDeadLetters, type DeadLetterCount } from '../../jobs/dead-letters/count-dead-letters.js'
import type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterPosition,
} from '../../jobs/dead-letters/dead-letter.js'
import type { DeadLetterGroup } from '../../jobs/dead-letters/dead-letter-rows.js'
import { findDeadLetters, listDeadLetters, withoutStorage } from '../../jobs/dead-letters/find-dead-letters.js'
import { changeTaskDetails, listUnfinishedTasks } from '../../persistence/operations/background-tasks.js'
import type { ListPage } from '../../persistence/sql/id-page.js'
import type { OperationsServices, Services } from '../../services/services.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
import {
  type BackgroundTask,
  type BackgroundTaskHandler,
  type BackgroundTaskHandlers,
  startBackgroundTask,
} from './background-tasks.js'
import { recordOperatorChange } from './record-operator-change.js'

export interface DeadLetterChange {
  readonly filter: DeadLetterFilter
  readonly reason?: string | undefined
}

const GROUPS = 200
const IDS_IN_LABEL = 10

/** The selection, as the audit log and confirmations name it. */
export function labelOfFilter({ ids, queue, fault, pod, entity, since, until }: DeadLetterFilter): string {
  if (ids !== undefined) return ids.slice(0, IDS_IN_LABEL).join(', ')
  const times = [since && `since ${since.toISOString()}`, until && `until ${until.toISOString()}`]
  return [queue, fault, pod, entity, ...times].filter((part) => part !== undefined).join(' ') || 'all'
}

/** A page of dead letters without their payloads, the latest first. */
export async function listDeadLetterPage(
  services: Pick<Services, 'db' | 'jobs'>,
  actor: Actor,
  filter: DeadLetterFilter,
  { limit, ...page }: DeadLetterPage,
): Promise<ListPage<DeadLetter>> {
  requirePower(actor, 'administration')
  const isTowardsNewer = page.before === undefined && page.after !== undefined
  const deadLetters = await findDeadLetters(services, filter, { ...page, limit: limit + 1 })
  const items = deadLetters.slice(0, limit).map(withoutStorage)
  const hasMore = deadLetters.length > limit
  if (isTowardsNewer) return { items: items.toReversed(), hasOlder: true, hasNewer: hasMore }
  return { items, hasOlder: hasMore, hasNewer: page.before !== undefined }
}

export async function groupDeadLetters(
  services: Pick<Services, 'db' | 'jobs'>,
  actor: Actor,
  filter: DeadLetterFilter,
  by: DeadLetterGroup,
): Promise<readonly DeadLetterCount[]> {
  requirePower(actor, 'administration')
  return countDeadLetters(services, filter, by, { groups: GROUPS })
}

export async function readDeadLetter(
  services: Pick<Services, 'db' | 'jobs'>,
  actor: Actor,
  id: string,
): Promise<DeadLetter> {
  requirePower(actor, 'administration')
  const [found] = await listDeadLetters(services, { ids: [id] }, 1)
  if (found === undefined) throw new Refusal('dead_letter_not_found', 'There is no such dead letter.')
  return found
}

export interface DeadLetterOutcome {
  /** The dead letters that were changed, or will be. */
  readonly count: number
  /** The work in the background; undefined: it is done. */
  readonly task?: BackgroundTask
}

/** Runs dead letters again, with an audit entry: at once, or in the background if they are many. */
export function replayAudited(
  services: OperationsServices,
  actor: Actor,
  change: DeadLetterChange,
): Promise<DeadLetterOutcome> {
  return changeAudited(services, actor, 'replay', change)
}

/** Deletes dead letters, with an audit entry: at once, or in the background if they are many. */
export function dropAudited(
  services: OperationsServices,
  actor: Actor,
  change: DeadLetterChange,
): Promise<DeadLetterOutcome> {
  return changeAudited(services, actor, 'drop', change)
}

/** Drops dead letters after a confirmation of their number. If there are none, dead letters that are added in the meantime stay. */
export async function dropConfirmed(
  services: OperationsServices,
  actor: Actor,
  { confirm, ...change }: DeadLetterChange & { readonly confirm?: string | undefined },
): Promise<DeadLetterOutcome> {
  requirePower(actor, 'administration')
  requireReason(change)
  const chosenCount = await countChosenDeadLetters(services, change.filter)
  if (chosenCount === 0) return { count: 0 }
  if (confirm !== String(chosenCount)) {
    throw new Refusal('confirmation_needed', `Set confirm to ${chosenCount} to delete the dead letters.`, {
      details: { preview: { dead_letters: chosenCount } },
    })
  }
  return dropAudited(services, actor, change)
}

async function countChosenDeadLetters(
  services: Pick<Services, 'db' | 'jobs'>,
  filter: DeadLetterFilter,
): Promise<number> {
  const { ids } = filter
  if (ids !== undefined) return (await findDeadLetters(services, filter, { limit: ids.length })).length
  const counts = await countDeadLetters(services, filter, 'queue', { groups: GROUPS })
  return counts.reduce((sum, { count }) => sum + count, 0)
}

async function changeAudited(
  services: OperationsServices,
  actor: Actor,
  work: DeadLetterWork,
  { filter, ...options }: DeadLetterChange,
): Promise<DeadLetterOutcome> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  const range = await findDeadLetterRange(services, filter)
  if (range === undefined) return { count: 0 }
  const total = await countChosenDeadLetters(services, filter)
  const isLarge = total > DEAD_LETTERS_OF_CHUNK
  let outcome: DeadLetterOutcome = { count: 0 }
  const change = { action: KINDS[work], target: { type: 'dead_letters', label: labelOfFilter(filter) }, reason }
  await recordOperatorChange(services, actor, change, async (transaction) => {
    if (!isLarge) {
      const { changed } = await changeDeadLetters(services, transaction, work, { filter, range })
      outcome = { count: changed }
      return changed === 0 ? undefined : { count: changed }
    }
    const details: DeadLetterTask = { filter, range }
    const target = targetOf(filter)
    const task = await startBackgroundTask(services, transaction, actor, {
      kind: KINDS[work],
      target,
      total,
      reason,
      details: JSON.parse(JSON.stringify(details)),
    })
    outcome = { count: total, task }
    return { count: total }
  })
  return outcome
}

const KINDS = { replay: 'dead_letters.replay', drop: 'dead_letters.drop' } as const

/** Lists the work on dead letters that is not done. */
export async function listDeadLetterTasks(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
): Promise<readonly BackgroundTask[]> {
  requirePower(actor, 'administration')
  return listUnfinishedTasks(db, Object.values(KINDS))
}

interface DeadLetterTask {
  readonly filter: DeadLetterFilter
  /** Where the operation continues; null: nothing is left. */
  readonly range: DeadLetterRange | null
}

/** Two operations of a kind do not run for one choice. */
function targetOf({ queue, fault, pod, entity, since, until }: DeadLetterFilter): string {
  const parts = [queue, fault, pod, entity, since?.toISOString(), until?.toISOString()]
  return parts.map((part) => part ?? '').join(' ')
}

/** Replays and deletes dead letters, a chunk in each transaction. The request has written the audit entry. */
export const deadLetterTaskHandlers: Pick<BackgroundTaskHandlers, 'dead_letters.drop' | 'dead_letters.replay'> = {
  [KINDS.replay]: handlerOf('replay'),
  [KINDS.drop]: handlerOf('drop'),
}

function handlerOf(work: DeadLetterWork): BackgroundTaskHandler {
  return {
    async runChunk(services, transaction, { id, details }) {
      const { filter, range } = readTaskDetails(details)
      if (range === null) return { done: 0, skipped: 0 }
      const { changed, skipped, rest } = await changeDeadLetters(services, transaction, work, { filter, range })
      await changeTaskDetails(transaction, id, { range: rest ?? null })
      return { done: changed, skipped }
    },
    async complete() {},
  }
}

/** The times were stored as texts. */
function readTaskDetails(details: Readonly<Record<string, unknown>>): DeadLetterTask {
  const { filter, range } = details as unknown as DeadLetterTask
  const timeOf = (name: 'since' | 'until') => filter[name] && { [name]: new Date(filter[name]) }
  const read = (position: DeadLetterPosition) => ({ id: position.id, failedAt: new Date(position.failedAt) })
  return {
    filter: { ...filter, ...timeOf('since'), ...timeOf('until') },
    range: range && { after: read(range.after), end: read(range.end) },
  }
}
