import type { PodHost } from '../../persistence/models/remote-pod.js'
import { formatAddressHost } from '../../protocol/address.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import type { OperatorChange } from './record-operator-change.js'

/** Refuses a change of another pod that is not by an admin or has no reason. Returns the target and reason of its audit entry. */
export function requirePodChange(
  actor: Actor,
  { host, port }: PodHost,
  options: { readonly reason?: string | undefined },
): Required<Pick<OperatorChange, 'target' | 'reason'>> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  return { target: { type: 'pod', label: formatAddressHost({ host, port }) }, reason }
}
