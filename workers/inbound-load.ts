/** A full batch waits beside the running ones. */
const BUSY_ABOVE = 256
/** Between two jobs of a burst few messages wait for a moment. */
const BUSY_FOR_MS = 100
const LOOK_EVERY_MS = 50
const WAIT_AT_MOST_MS = 5_000

/** The received messages of this process that are not yet stored. */
export interface InboundLoad {
  /** Counts these messages until the work has ended. */
  during<Result>(messages: number, work: () => Promise<Result>): Promise<Result>
  /** Resolves when few messages wait to be stored, five seconds after the first caller at the latest, or when the process ends. */
  untilLow(ending: AbortSignal): Promise<void>
}

export function openInboundLoad(): InboundLoad {
  let messages = 0
  let busyUntil = Number.NEGATIVE_INFINITY
  let wait: Promise<void> | undefined

  function add(count: number): void {
    messages += count
    const before = messages - count
    if (Math.max(before, messages) > BUSY_ABOVE) busyUntil = performance.now() + BUSY_FOR_MS
  }

  const isBusy = () => messages > BUSY_ABOVE || performance.now() < busyUntil

  async function waitUntilLow(ending: AbortSignal): Promise<void> {
    const end = performance.now() + WAIT_AT_MOST_MS
    while (!ending.aborted && isBusy() && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
    }
  }

  return {
    async during(count, work) {
      add(count)
      try {
        return await work()
      } finally {
        add(-count)
      }
    },

    untilLow(ending) {
      wait ??= waitUntilLow(ending).finally(() => {
        wait = undefined
      })
      return wait
    },
  }
}
