import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks'

/** An event loop and its clock. */
export interface Loop {
  /** The time in milliseconds. */
  now(): number
  /** The busy fraction of the time since the last call. */
  utilization(): number
}

/** Each sample wakes the process, which is most of the cost of an idle pod. */
const OFTEN_MS = 100
/** An event loop with little work is rarely late. */
const SELDOM_MS = 5_000
const BUSY = 0.05

export interface LoopWatch {
  /** Samples often again, because work has arrived. */
  wake(): void
  stop(): void
}

/** Reports the lag of the event loop in milliseconds, often while the loop is busy or `report` returns true, otherwise seldom. */
export function watchLoopLag(report: (lateMs: number) => boolean, loop: Loop = loopOfProcess()): LoopWatch {
  let timer: NodeJS.Timeout
  let isAsleep = false
  const sampleIn = (period: number) => {
    isAsleep = period === SELDOM_MS
    const due = loop.now() + period
    timer = setTimeout(() => {
      const isWanted = report(Math.max(0, loop.now() - due))
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

/** Collects the lag of the event loop, in microseconds; its reader resets it. */
export function recordLoopLag(): { readonly lag: RecordableHistogram; stop(): void } {
  const lag = createHistogram()
  const { stop } = watchLoopLag((lateMs) => {
    lag.record(Math.max(1, Math.round(lateMs * 1_000)))
    return false
  })
  return { lag, stop }
}

function loopOfProcess(): Loop {
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
