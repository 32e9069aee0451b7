/** Runs a function now and at an interval, one run at a time. The function handles its own errors; `stopping` asks it to end early. */
export function runPeriodically(
  every: number,
  run: (stopping: AbortSignal) => Promise<void>,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let underWay: Promise<void> | undefined

  function turn(): void {
    underWay ??= run(stopping.signal).finally(() => {
      underWay = undefined
    })
  }

  turn()
  const timer = setInterval(turn, every)
  return {
    /** Resolves when the last run has ended. */
    async stop() {
      clearInterval(timer)
      stopping.abort()
      await underWay
    },
  }
}
