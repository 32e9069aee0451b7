import { type Loop, watchLoopLag } from '../../logging/loop-lag.js'

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

/** One long stop, of the whole machine perhaps, is over when it is seen; it counts as one of these. */
const JUDGED_BY = 5

/** Whether the event loop was mostly late. */
export function watchPressure(maxDelayMs: number, loop?: Loop): Pressure {
  const recent: boolean[] = []
  const watch = watchLoopLag((lateMs) => {
    recent.unshift(lateMs > maxDelayMs)
    recent.length = Math.min(recent.length, JUDGED_BY)
    return recent.includes(true)
  }, loop)
  return {
    isHigh() {
      watch.wake() // who asks has a request
      return recent.filter(Boolean).length > JUDGED_BY / 2
    },
    stop: watch.stop,
  }
}
