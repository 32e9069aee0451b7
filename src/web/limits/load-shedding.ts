import { type Loop, watchLoopLag } from '../../logging/loop-lag.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** The event loop is too late to accept new requests. */
    isUnderPressure(): boolean
  }
}

export interface Pressure {
  isHigh(): boolean
  stop(): void
}

/** A single long stop, for example of the whole machine, is over when it is measured, so it counts as one sample of these. */
const SAMPLES = 5

/** Reports high pressure while most of the recent samples of the event loop were late. */
export function watchPressure(maxDelayMs: number, loop?: Loop): Pressure {
  const recent: boolean[] = []
  const watch = watchLoopLag((lateMs) => {
    recent.unshift(lateMs > maxDelayMs)
    recent.length = Math.min(recent.length, SAMPLES)
    return recent.includes(true)
  }, loop)
  return {
    isHigh() {
      watch.wake() // a request has arrived, so the loop is measured again
      return recent.filter(Boolean).length > SAMPLES / 2
    },
    stop: watch.stop,
  }
}
