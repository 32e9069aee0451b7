import type { DeliveryLimits } from '../../limits.js'

/** First exchanges with proven pods that this process has begun and that are not answered yet. */
const silent = new Set<AbortController>()

/**
 * Asks a pod that has proven to answer, for as long as that keeps nobody else waiting: when many of them are silent at once,
 * as if a whole data centre were gone, whoever has been so for some seconds gives way. Undefined: it has.
 */
export async function requestOrYield<Answer>(
  ask: (signal: AbortSignal) => Promise<Answer>,
  signal: AbortSignal,
  { patienceMs, silentAtOnce }: Pick<DeliveryLimits, 'patienceMs' | 'silentAtOnce'>,
): Promise<Answer | undefined> {
  const exchange = new AbortController()
  const timer = setInterval(() => {
    if (silent.size <= silentAtOnce) return
    silent.delete(exchange)
    exchange.abort(new Error('Too many other pods are silent as well.'))
  }, patienceMs)
  silent.add(exchange)
  try {
    return await ask(AbortSignal.any([signal, exchange.signal]))
  } catch (error) {
    if (exchange.signal.aborted && !signal.aborted) return undefined
    throw error
  } finally {
    clearInterval(timer)
    silent.delete(exchange)
  }
}
