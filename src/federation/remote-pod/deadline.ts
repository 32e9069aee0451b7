import { RemotePodError } from './remote-pod-error.js'

export interface ExchangeDeadline {
  readonly signal: AbortSignal
  /** Excludes a wait inside this process from the time that the other pod has had. */
  exclude<Value>(wait: Promise<Value>): Promise<Value>
}

/** Runs one exchange and aborts it when its time is over or the caller aborts. */
export async function withExchangeDeadline<Value>(
  milliseconds: number,
  caller: AbortSignal | undefined,
  run: (deadline: ExchangeDeadline) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController()
  const abort = () => controller.abort(caller?.reason)
  const localWait = openWaitClock()
  const timer = setTimeout(() => controller.abort(deadlineError(milliseconds, localWait.total())), milliseconds)
  caller?.addEventListener('abort', abort, { once: true })
  if (caller?.aborted) abort()
  try {
    return await run({ signal: controller.signal, exclude: localWait.measure })
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error
  } finally {
    clearTimeout(timer)
    caller?.removeEventListener('abort', abort)
  }
}

/** If more than half of the time was spent waiting inside this process, the fault is not the pod's. */
function deadlineError(milliseconds: number, waited: number): RemotePodError {
  const seconds = Number((milliseconds / 1000).toPrecision(3))
  return waited > milliseconds / 2
    ? new RemotePodError('busy', `Too many requests were running to finish this one within ${seconds} s.`)
    : new RemotePodError('timeout', `There was no complete answer within ${seconds} s.`)
}

function openWaitClock() {
  let waitedMs = 0
  let since: number | undefined
  return {
    total: () => waitedMs + (since === undefined ? 0 : performance.now() - since),
    async measure<Value>(wait: Promise<Value>): Promise<Value> {
      since = performance.now()
      try {
        return await wait
      } finally {
        waitedMs += performance.now() - since
        since = undefined
      }
    },
  }
}
