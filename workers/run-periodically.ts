/** Does something now and again and again, one run at a time. What goes wrong in a run is for the run to tell. */
export function repeat(every: number, run: () => Promise<void>): { stop(): Promise<void> } {
  let underWay: Promise<void> | undefined

  function turn(): void {
    underWay ??= run().finally(() => {
      underWay = undefined
    })
  }

  turn()
  const timer = setInterval(turn, every)
  return {
    /** Resolves when the last run has come to its end. */
    async stop() {
      clearInterval(timer)
      await underWay
    },
  }
}
