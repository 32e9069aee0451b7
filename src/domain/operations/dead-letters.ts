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
import type { DeadLetterGroup } from '../../jobs/dead-letters/failed-rows.js'
import { findDeadLetters, listDeadLetters, withoutPlace } from '../../jobs/dead-letters/find-dead-letters.js'
import { changeOperationDetails, listUnfinishedOperations } from '../../persistence/operations/operations.js'
import type { IdPageResult } from '../../persistence/sql/id-page.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
import { type BackgroundOperation, type OperationWork, type OperationWorks, startOperation } from './long-operations.js'
import { recordOperatorChange } from './record-operator-change.js'

export interface DeadLetterChange {
  readonly filter: DeadLetterFilter
  /** What the audit log says was chosen. */
  readonly label: string
  readonly reason?: string | undefined
}

type OperationsPod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'requestContext'>

const GROUPS = 200

/** A page of dead letters without their payloads, the latest first. */
export async function listDeadLetterPage(
  pod: Pick<Pod, 'db' | 'jobs'>,
  actor: Actor,
  filter: DeadLetterFilter,
  { limit, ...page }: DeadLetterPage,
): Promise<IdPageResult<DeadLetter>> {
  requirePower(actor, 'administration')
  const isTowardsNewer = page.before === undefined && page.after !== undefined
  const deadLetters = await findDeadLetters(pod, filter, { ...page, limit: limit + 1 })
  const items = deadLetters.slice(0, limit).map(withoutPlace)
  const hasMore = deadLetters.length > limit
  if (isTowardsNewer) return { items: items.toReversed(), hasOlder: true, hasNewer: hasMore }
  return { items, hasOlder: hasMore, hasNewer: page.before !== undefined }
}

export async function groupDeadLetters(
  pod: Pick<Pod, 'db' | 'jobs'>,
  actor: Actor,
  filter: DeadLetterFilter,
  by: DeadLetterGroup,
): Promise<readonly DeadLetterCount[]> {
  requirePower(actor, 'administration')
  return countDeadLetters(pod, filter, by, { groups: GROUPS })
}

export async function readDeadLetter(pod: Pick<Pod, 'db' | 'jobs'>, actor: Actor, id: string): Promise<DeadLetter> {
  requirePower(actor, 'administration')
  const [found] = await listDeadLetters(pod, { ids: [id] }, 1)
  if (found === undefined) throw new Refusal('dead_letter_not_found', 'There is no such dead letter.')
  return found
}

export interface DeadLetterOutcome {
  /** The dead letters that were changed, or will be. */
  readonly count: number
  /** The work in the background; undefined: it is done. */
  readonly operation?: BackgroundOperation
}

/** Runs dead letters again, with an audit entry: at once, or in the background if they are many. */
export function replayAudited(pod: OperationsPod, actor: Actor, change: DeadLetterChange): Promise<DeadLetterOutcome> {
  return changeAudited(pod, actor, 'replay', change)
}

/** Deletes dead letters, with an audit entry: at once, or in the background if they are many. */
export function dropAudited(pod: OperationsPod, actor: Actor, change: DeadLetterChange): Promise<DeadLetterOutcome> {
  return changeAudited(pod, actor, 'drop', change)
}

/** The same after a confirmation of the number. */
export async function dropConfirmed(
  pod: OperationsPod,
  actor: Actor,
  { confirm, ...change }: DeadLetterChange & { readonly confirm?: string | undefined },
): Promise<DeadLetterOutcome> {
  requirePower(actor, 'administration')
  requireReason(change)
  const chosen = await countChosen(pod, change.filter)
  if (chosen > 0 && confirm !== String(chosen)) {
    throw new Refusal('confirmation_needed', `Set confirm to ${chosen} to delete the dead letters.`, {
      details: { preview: { dead_letters: chosen } },
    })
  }
  return dropAudited(pod, actor, change)
}

async function countChosen(pod: Pick<Pod, 'db' | 'jobs'>, filter: DeadLetterFilter): Promise<number> {
  const { ids } = filter
  if (ids !== undefined) return (await findDeadLetters(pod, filter, { limit: ids.length })).length
  const counts = await countDeadLetters(pod, filter, 'queue', { groups: GROUPS })
  return counts.reduce((sum, { count }) => sum + count, 0)
}

async function changeAudited(
  pod: OperationsPod,
  actor: Actor,
  work: DeadLetterWork,
  { label, filter, ...options }: DeadLetterChange,
): Promise<DeadLetterOutcome> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  const range = await findDeadLetterRange(pod, filter)
  if (range === undefined) return { count: 0 }
  const total = await countChosen(pod, filter)
  const isLarge = total > DEAD_LETTERS_OF_CHUNK
  let outcome: DeadLetterOutcome = { count: 0 }
  const change = { action: KINDS[work], target: { type: 'dead_letters', label }, reason }
  await recordOperatorChange(pod, actor, change, async (transaction) => {
    if (!isLarge) {
      const { changed } = await changeDeadLetters(pod, transaction, work, filter, range)
      outcome = { count: changed }
      return changed === 0 ? undefined : { count: changed }
    }
    const details: DeadLetterOperation = { filter, range }
    const target = targetOf(filter)
    const operation = await startOperation(pod, transaction, actor, {
      ...{ kind: KINDS[work], target, total, reason },
      details: JSON.parse(JSON.stringify(details)),
    })
    outcome = { count: total, operation }
    return { count: total }
  })
  return outcome
}

const KINDS = { replay: 'dead_letters.replay', drop: 'dead_letters.drop' } as const

/** Lists the work on dead letters that is not done. */
export async function listDeadLetterOperations(
  { db }: Pick<Pod, 'db'>,
  actor: Actor,
): Promise<readonly BackgroundOperation[]> {
  requirePower(actor, 'administration')
  return listUnfinishedOperations(db, Object.values(KINDS))
}

interface DeadLetterOperation {
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
export const deadLetterOperations: Pick<OperationWorks, 'dead_letters.drop' | 'dead_letters.replay'> = {
  [KINDS.replay]: workOf('replay'),
  [KINDS.drop]: workOf('drop'),
}

function workOf(work: DeadLetterWork): OperationWork {
  return {
    async runChunk(pod, transaction, { id, details }) {
      const { filter, range } = readOperation(details)
      if (range === null) return { done: 0, skipped: 0 }
      const { changed, skipped, rest } = await changeDeadLetters(pod, transaction, work, filter, range)
      await changeOperationDetails(transaction, id, { range: rest ?? null })
      return { done: changed, skipped }
    },
    async complete() {},
  }
}

/** The times were stored as texts. */
function readOperation(details: Readonly<Record<string, unknown>>): DeadLetterOperation {
  const { filter, range } = details as unknown as DeadLetterOperation
  const timeOf = (name: 'since' | 'until') => filter[name] && { [name]: new Date(filter[name]) }
  const read = (position: DeadLetterPosition) => ({ id: position.id, failedAt: new Date(position.failedAt) })
  return {
    filter: { ...filter, ...timeOf('since'), ...timeOf('until') },
    range: range && { after: read(range.after), end: read(range.end) },
  }
}
