import type { PodHost } from '../../persistence/models/pod.js'
import type { Pod } from '../../pod/pod.js'
import { addressHostOf } from '../../protocol/address.js'
import { type Actor, type Power, requirePower } from '../moderation/actor.js'
import { blockHost, unblockHost } from '../moderation/pod-rules.js'
import { putPodToSleep, wakePod } from '../moderation/pods.js'
import { requireReason } from '../moderation/record-action.js'
import { recordOperation } from './record-operation.js'

type Pieces = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'claimedKey' | 'config'>

const ACTIONS = {
  wake: { power: 'administration', run: wakePod },
  sleep: { power: 'administration', run: putPodToSleep },
} as const satisfies Readonly<Record<string, { power: Power; run: (pod: Pieces, podId: number) => Promise<void> }>>

export type PodAction = keyof typeof ACTIONS | 'block' | 'unblock'

/** Changes what this pod does with another one, with an audit entry. */
export async function changePod(
  pod: Pieces,
  actor: Actor,
  action: PodAction,
  { id, host, port, ...options }: PodHost & { readonly id: number; readonly reason?: string | undefined },
): Promise<void> {
  if (action === 'block') return void (await blockHost(pod, actor, { host, port }, options))
  if (action === 'unblock') return void (await unblockHost(pod, actor, { host, port }, options))
  const { power, run } = ACTIONS[action]
  requirePower(actor, power)
  const reason = requireReason(options)
  await run(pod, id)
  const target = { type: 'pod', label: addressHostOf({ host, port }) }
  await recordOperation(pod, actor, { action: `pod.${action}`, target, reason })
}
