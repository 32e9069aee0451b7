import { BURST_LIMITS } from './limits.js'

/** The received messages of this process that are not yet stored. */
export interface InboundLoad {
  /** Counts these messages until the work has ended. */
  during<Result>(messages: number, work: () => Promise<Result>): Promise<Result>
  /** Resolves when few messages wait to be stored, five seconds after the first caller at the latest, or when the process ends. */
  untilLow(stopping: AbortSignal): Promise<void>
}

export function openInboundLoad(): InboundLoad {
  let messages = 0
  let busyUntil = Number.NEGATIVE_INFINITY
  let wait: Promise<void> | undefined

  function add(count: number): void {
    messages += count
    const before = messages - count
    if (Math.max(before, messages) > BURST_LIMITS.maxUnstoredMessages)
      busyUntil = performance.now() + BURST_LIMITS.lastsMs
  }

  const isBusy = () => messages > BURST_LIMITS.maxUnstoredMessages || performance.now() < busyUntil

  async function waitUntilLow(stopping: AbortSignal): Promise<void> {
    const end = performance.now() + BURST_LIMITS.maxWaitMs
    while (!stopping.aborted && isBusy() && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, BURST_LIMITS.pollIntervalMs))
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

    untilLow(stopping) {
      wait ??= waitUntilLow(stopping).finally(() => {
        wait = undefined
      })
      return wait
    },
  }
}
