import type { DeliveryLimits } from './limits.js'

/** Running first requests to proven pods. */
export type UnansweredRequests = Set<AbortController>

/**
 * Sends a request to a proven pod. It is checked after each `silentAfterMs` and aborted if more than `maxConcurrentSilentPods` such
 * requests are unanswered, as in an outage of a data centre. Without this, silent pods would occupy all slots of the queue `outbound`.
 * Undefined: aborted.
 */
export async function requestOrYield<Answer>(
  unanswered: UnansweredRequests,
  request: (signal: AbortSignal) => Promise<Answer>,
  signal: AbortSignal,
  { silentAfterMs, maxConcurrentSilentPods }: Pick<DeliveryLimits, 'silentAfterMs' | 'maxConcurrentSilentPods'>,
): Promise<Answer | undefined> {
  const controller = new AbortController()
  const timer = setInterval(() => {
    if (unanswered.size <= maxConcurrentSilentPods) return
    unanswered.delete(controller)
    controller.abort(new Error('Too many other pods do not answer either.'))
  }, silentAfterMs)
  unanswered.add(controller)
  try {
    return await request(AbortSignal.any([signal, controller.signal]))
  } catch (error) {
    if (controller.signal.aborted && !signal.aborted) return undefined
    throw error
  } finally {
    clearInterval(timer)
    unanswered.delete(controller)
  }
}
