export interface StopRequest {
  /** Somebody asked us to stop. */
  readonly signal: AbortSignal
  /** Somebody asked again: at once. */
  readonly urgent: AbortSignal
}

/** Who stops a process and its whole group reaches us twice; `npm start` takes its time to send on what the terminal has sent to us already. */
const ECHO = { alone: 100, underNpm: 1_000 }

export function listenForStop(): StopRequest {
  const stop = new AbortController()
  const urgent = new AbortController()
  const echo = process.env['npm_lifecycle_event'] === 'start' ? ECHO.underNpm : ECHO.alone
  let askedAt = 0
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!stop.signal.aborted) {
        askedAt = performance.now()
        return stop.abort()
      }
      if (performance.now() - askedAt < echo) return
      urgent.abort()
    })
  }
  return { signal: stop.signal, urgent: urgent.signal }
}

/** Waits for what comes first: the work, or the request to stop, which leaves the work to itself. */
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
