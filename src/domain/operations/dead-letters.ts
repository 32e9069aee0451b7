import type { DeadLetterFilter } from '../../jobs/dead-letters/find-dead-letters.js'
import { dropDeadLetters, replayDeadLetters } from '../../jobs/dead-letters/replay-dead-letters.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { recordOperation } from './record-operation.js'

export interface DeadLetterChange {
  readonly filter: DeadLetterFilter
  /** What the audit log says was chosen. */
  readonly label: string
  readonly reason?: string | undefined
}

type OperationsPod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'claimedKey'>

/** Runs dead letters again, with an audit entry; returns their number. */
export async function replayAudited(pod: OperationsPod, actor: Actor, change: DeadLetterChange): Promise<number> {
  return audited(pod, actor, 'dead_letters.replay', change, () => replayDeadLetters(pod, change.filter))
}

/** Deletes dead letters, with an audit entry; returns their number. */
export async function dropAudited(pod: OperationsPod, actor: Actor, change: DeadLetterChange): Promise<number> {
  return audited(pod, actor, 'dead_letters.drop', change, () => dropDeadLetters(pod, change.filter))
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
  await recordOperation(pod, actor, { action, target: { type: 'dead_letters', label }, reason, after: { count } })
  return count
}
