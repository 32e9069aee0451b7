import { OutOfTime } from './job-outcome.js'

/**
 * Rejects when a handler exceeds its time, even if it ignores its signal. This frees its slot. Its later effects roll back,
 * because its outbox row is gone.
 */
export async function withDeadline<Result>(
  milliseconds: number,
  abortSignal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  const { promise: ended, reject } = createRejectablePromise()
  const end = (error: OutOfTime) => {
    controller.abort(error)
    reject(error)
  }
  const stop = () => end(new OutOfTime('stopped', 'The process stops.'))
  const timer = setTimeout(
    () => end(new OutOfTime('timeout', `The job exceeded its ${milliseconds} ms.`)),
    milliseconds,
  )
  if (abortSignal.aborted) stop()
  abortSignal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([ended, work(controller.signal)])
  } finally {
    clearTimeout(timer)
    abortSignal.removeEventListener('abort', stop)
  }
}

function createRejectablePromise(): { promise: Promise<never>; reject: (error: Error) => void } {
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<never>((_, rejecter) => {
    reject = rejecter
  })
  promise.catch(() => {}) // the race may be over
  return { promise, reject }
}
