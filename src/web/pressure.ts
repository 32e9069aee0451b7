import { monitorEventLoopDelay } from 'node:perf_hooks'

declare module 'fastify' {
  interface FastifyInstance {
    /** The event loop is so late that nobody new should be let in. */
    isUnderPressure(): boolean
  }
}

export interface Pressure {
  isHigh(): boolean
  stop(): void
}

/** Each sample wakes the process: a hundred in a second would be a third of what an idle pod costs. */
const SAMPLE_EVERY_MS = 100
const JUDGE_EVERY_MS = 1_000

/** How late the event loop mostly was in the last second: one long stop, of the whole machine perhaps, is over when it is seen. */
export function watchPressure(maxDelayMs: number): Pressure {
  const delays = monitorEventLoopDelay({ resolution: SAMPLE_EVERY_MS })
  delays.enable()
  let isHigh = false
  const timer = setInterval(() => {
    isHigh = delays.percentile(50) / 1e6 - SAMPLE_EVERY_MS > maxDelayMs
    delays.reset()
  }, JUDGE_EVERY_MS)
  timer.unref()
  return {
    isHigh: () => isHigh,
    stop() {
      clearInterval(timer)
      delays.disable()
    },
  }
}
