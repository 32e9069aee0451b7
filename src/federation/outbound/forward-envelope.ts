import { Pod as OtherPod } from '../../persistence/models/pod.js'
import type { Pod } from '../../pod/pod.js'
import { podOrigin } from '../discovery/pod-origin.js'
import { DELIVERY_LIMITS } from './limits.js'

/** Sends an envelope of another author to a pod, byte by byte. A refusal of the pod ends the job, any other failure is retried. */
export async function forwardEnvelope(
  { db, remote, log }: Pick<Pod, 'db' | 'remote' | 'log'>,
  { envelope, podId }: { readonly envelope: string; readonly podId: number },
): Promise<void> {
  const other = await OtherPod.query(db).findById(podId)
  const origin = other === undefined || other.blockedAt !== null ? undefined : podOrigin(other)
  if (origin === undefined) return
  const { status } = await remote.post(`${origin}/receive/public`, 'application/magic-envelope+xml', envelope, {
    deadline: DELIVERY_LIMITS.exchangeMs,
  })
  if (status >= 500) throw new Error(`${origin} answered a forwarded message with status ${status}.`)
  if (status >= 400) log.info({ pod: origin, status }, 'forwarded message refused')
}
