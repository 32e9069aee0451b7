import type { Pod } from '../../pod/pod.js'
import { type Actor, type Power, requirePower } from '../moderation/actor.js'
import { blockPod, putPodToSleep, unblockPod, wakePod } from '../moderation/pods.js'
import { requireReason } from '../moderation/record-action.js'
import { recordOperation } from './record-operation.js'

type Pieces = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'claimedKey'>

const ACTIONS = {
  wake: { power: 'administration', run: wakePod },
  sleep: { power: 'administration', run: putPodToSleep },
  block: { power: 'moderation', run: blockPod },
  unblock: { power: 'moderation', run: unblockPod },
} as const satisfies Readonly<Record<string, { power: Power; run: (pod: Pieces, podId: number) => Promise<void> }>>

export type PodAction = keyof typeof ACTIONS

/** Changes what this pod does with another one, with an audit entry. */
export async function changePod(
  pod: Pieces,
  actor: Actor,
  action: PodAction,
  { id, name, ...options }: { readonly id: number; readonly name: string; readonly reason?: string | undefined },
): Promise<void> {
  const { power, run } = ACTIONS[action]
  requirePower(actor, power)
  const reason = requireReason(options)
  await run(pod, id)
  await recordOperation(pod, actor, { action: `pod.${action}`, target: { type: 'pod', label: name }, reason })
}
