import { countDeadLetters, type DeadLetterCount } from '../../jobs/dead-letters/count-dead-letters.js'
import type { DeadLetter, DeadLetterFilter, DeadLetterPage } from '../../jobs/dead-letters/dead-letter.js'
import type { DeadLetterGroup } from '../../jobs/dead-letters/failed-rows.js'
import { findDeadLetters, listDeadLetters, withoutPlace } from '../../jobs/dead-letters/find-dead-letters.js'
import { dropDeadLetters, replayDeadLetters } from '../../jobs/dead-letters/replay-dead-letters.js'
import type { IdPageResult } from '../../persistence/sql/id-page.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
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
  return countDeadLetters(pod, filter, by, GROUPS)
}

export async function readDeadLetter(pod: Pick<Pod, 'db' | 'jobs'>, actor: Actor, id: string): Promise<DeadLetter> {
  requirePower(actor, 'administration')
  const [found] = await listDeadLetters(pod, { id }, 1)
  if (found === undefined) throw new Refusal('dead_letter_not_found', 'There is no such dead letter.')
  return found
}

/** Runs dead letters again, with an audit entry; returns their number. */
export async function replayAudited(pod: OperationsPod, actor: Actor, change: DeadLetterChange): Promise<number> {
  return audited(pod, actor, 'dead_letters.replay', change, () => replayDeadLetters(pod, change.filter))
}

/** Deletes dead letters, with an audit entry; returns their number. */
export async function dropAudited(pod: OperationsPod, actor: Actor, change: DeadLetterChange): Promise<number> {
  return audited(pod, actor, 'dead_letters.drop', change, () => dropDeadLetters(pod, change.filter))
}

/** The same after a confirmation of the number. */
export async function dropConfirmed(
  pod: OperationsPod,
  actor: Actor,
  { confirm, ...change }: DeadLetterChange & { readonly confirm?: string | undefined },
): Promise<number> {
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
  if (filter.id !== undefined) return (await findDeadLetters(pod, filter, { limit: 1 })).length
  const counts = await countDeadLetters(pod, filter, 'queue', GROUPS)
  return counts.reduce((sum, { count }) => sum + count, 0)
}

async function audited(
  pod: OperationsPod,
  actor: Actor,
  action: string,
  { label, ...options }: DeadLetterChange,
  run: () => Promise<number>,
): Promise<number> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  const count = await run()
  const target = { type: 'dead_letters', label }
  if (count > 0) await recordOperatorChange(pod, actor, { action, target, reason, after: { count } })
  return count
}
