import { countDeadLetters, type DeadLetterCount } from '../../jobs/dead-letters/count-dead-letters.js'
import type { DeadLetterGroup } from '../../jobs/dead-letters/failed-rows.js'
import {
  type DeadLetter,
  type DeadLetterFilter,
  findDeadLetters,
  listDeadLetters,
} from '../../jobs/dead-letters/find-dead-letters.js'
import { dropDeadLetters, replayDeadLetters } from '../../jobs/dead-letters/replay-dead-letters.js'
import type { OffsetPage } from '../../persistence/sql/keyset-page.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
import { recordOperation } from './record-operation.js'

export interface DeadLetterChange {
  readonly filter: DeadLetterFilter
  /** What the audit log says was chosen. */
  readonly label: string
  readonly reason?: string | undefined
}

type OperationsPod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'claimedKey'>

const GROUPS = 200

/** A page of dead letters without their payloads, the latest first. */
export async function listDeadLetterPage(
  pod: Pick<Pod, 'db' | 'jobs'>,
  actor: Actor,
  filter: DeadLetterFilter,
  { offset, limit }: OffsetPage,
): Promise<{ readonly items: readonly DeadLetter[]; readonly more: boolean }> {
  requirePower(actor, 'administration')
  const found = await listDeadLetters(pod, filter, offset + limit + 1)
  return { items: found.slice(offset, offset + limit), more: found.length > offset + limit }
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
  const { length } = await findDeadLetters(pod, change.filter)
  if (length > 0 && confirm !== String(length)) {
    throw new Refusal('confirmation_needed', `Set confirm to ${length} to delete the dead letters.`, {
      details: { preview: { dead_letters: length } },
    })
  }
  return dropAudited(pod, actor, change)
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
  if (count > 0) await recordOperation(pod, actor, { action, target, reason, after: { count } })
  return count
}
