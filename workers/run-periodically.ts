/** Runs a function now and at an interval, one run at a time. The function handles its own errors. */
export function runPeriodically(every: number, run: () => Promise<void>): { stop(): Promise<void> } {
  let underWay: Promise<void> | undefined

  function turn(): void {
    underWay ??= run().finally(() => {
      underWay = undefined
    })
  }

  turn()
  const timer = setInterval(turn, every)
  return {
    /** Resolves when the last run has ended. */
    async stop() {
      clearInterval(timer)
      await underWay
    },
  }
}
