export interface StopRequest {
  /** Aborts at the first request to stop. */
  readonly signal: AbortSignal
  /** Aborts at the second request: stop at once. */
  readonly urgent: AbortSignal
}

/** Signals to the process and to its group arrive twice within this time. */
const ECHO = 100
/** npm forwards signals that the terminal has already sent to this process. */
const ECHO_OF_NPM = 1_000

export function listenForStop(): StopRequest {
  const stop = new AbortController()
  const urgent = new AbortController()
  const isUnderNpm = process.env['npm_lifecycle_event'] === 'start'
  let firstRequest: { readonly signal: string; readonly at: number } | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (firstRequest === undefined) {
        firstRequest = { signal, at: performance.now() }
        return stop.abort()
      }
      const since = performance.now() - firstRequest.at
      const isEcho = isUnderNpm ? since < ECHO_OF_NPM : signal === firstRequest.signal && since < ECHO
      if (!isEcho) urgent.abort()
    })
  }
  return { signal: stop.signal, urgent: urgent.signal }
}

/** Waits for the work or the request to stop; the work continues after a request to stop. */
export async function untilAborted(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  work.catch(() => undefined)
  if (signal.aborted) return
  let stop: () => void = () => undefined
  const aborted = new Promise<void>((resolve) => {
    stop = resolve
    signal.addEventListener('abort', stop)
  })
  try {
    await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
