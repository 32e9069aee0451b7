/** Runs a function now and at an interval, one run at a time. The function handles its own errors, and ends early when `stopping` aborts. */
export function runPeriodically(
  intervalMs: number,
  run: (stopping: AbortSignal) => Promise<void>,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let currentRun: Promise<void> | undefined

  function startRun(): void {
    currentRun ??= run(stopping.signal).finally(() => {
      currentRun = undefined
    })
  }

  startRun()
  const timer = setInterval(startRun, intervalMs)
  return {
    /** Resolves when the last run has ended. */
    async stop() {
      clearInterval(timer)
      stopping.abort()
      await currentRun
    },
  }
}
