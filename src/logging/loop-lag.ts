import { performance } from 'node:perf_hooks'

/** An event loop, and a clock beside it. */
export interface Loop {
  /** In milliseconds. */
  now(): number
  /** The part of the time since this was last asked in which it had something to do. */
  utilization(): number
}

/** A sample wakes the process, which is most of what it costs a pod to do nothing. */
const OFTEN_MS = 100
/** A loop that has little to do is hardly ever late. */
const SELDOM_MS = 5_000
const BUSY = 0.05

export interface LoopWatch {
  /** There is something to do: what takes too long should be seen soon. */
  wake(): void
  stop(): void
}

/** Tells again and again by how many milliseconds the event loop is late. Who answers with true is told soon again, whatever there is to do. */
export function watchLoopLag(tell: (lateMs: number) => boolean, loop: Loop = thisLoop()): LoopWatch {
  let timer: NodeJS.Timeout
  let isAsleep = false
  const sampleIn = (period: number) => {
    isAsleep = period === SELDOM_MS
    const due = loop.now() + period
    timer = setTimeout(() => {
      const isWanted = tell(Math.max(0, loop.now() - due))
      sampleIn(loop.utilization() > BUSY || isWanted ? OFTEN_MS : SELDOM_MS)
    }, period)
    timer.unref()
  }
  sampleIn(OFTEN_MS)
  return {
    wake() {
      if (!isAsleep) return
      clearTimeout(timer)
      sampleIn(OFTEN_MS)
    },
    stop: () => clearTimeout(timer),
  }
}

function thisLoop(): Loop {
  let before = performance.eventLoopUtilization()
  return {
    now: () => performance.now(),
    utilization() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, before)
      before = now
      return utilization
    },
  }
}
