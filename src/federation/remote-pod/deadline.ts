import { RemotePodError } from './remote-pod-error.js'

export interface Deadline {
  readonly signal: AbortSignal
  /** Runs what waits for ourselves; this time is not held against the other pod. */
  waiting<Value>(turn: Promise<Value>): Promise<Value>
}

/** Runs one exchange, which ends when its time is over or the caller has enough, whatever it is doing. */
export async function withDeadline<Value>(
  milliseconds: number,
  caller: AbortSignal | undefined,
  run: (deadline: Deadline) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController()
  const giveUp = () => controller.abort(caller?.reason)
  const turns = waitingTime()
  const timer = setTimeout(() => controller.abort(tooLate(milliseconds, turns.total())), milliseconds)
  caller?.addEventListener('abort', giveUp, { once: true })
  if (caller?.aborted) giveUp()
  try {
    return await run({ signal: controller.signal, waiting: turns.waiting })
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error
  } finally {
    clearTimeout(timer)
    caller?.removeEventListener('abort', giveUp)
  }
}

/** A pod that got less than half of the time because we waited for ourselves is not called slow. */
function tooLate(milliseconds: number, waited: number): RemotePodError {
  const seconds = Number((milliseconds / 1000).toPrecision(3))
  return waited > milliseconds / 2
    ? new RemotePodError('busy', `Too much was under way to end this within ${seconds} s.`)
    : new RemotePodError('timeout', `There was no complete answer within ${seconds} s.`)
}

function waitingTime() {
  let waited = 0
  let since: number | undefined
  return {
    total: () => waited + (since === undefined ? 0 : performance.now() - since),
    async waiting<Value>(turn: Promise<Value>): Promise<Value> {
      since = performance.now()
      try {
        return await turn
      } finally {
        waited += performance.now() - since
        since = undefined
      }
    },
  }
}
