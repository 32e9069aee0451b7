import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'
import { watchLoopLag } from '../logging/loop-lag.js'

/** The library's own sampler wakes the process whether it has something to do or not: it sleeps for weeks. */
export const LIBRARY_SLEEPS = { eventLoopMonitoringPrecision: 2 ** 31 - 1 }

const MICROSECONDS = 1_000_000

/** Under the names that the library gives to what its own sampler finds. */
const FIGURES: Readonly<Record<string, (lag: RecordableHistogram) => number>> = {
  min: ({ min }) => min,
  max: ({ max }) => max,
  mean: ({ mean }) => mean,
  stddev: ({ stddev }) => stddev,
  p50: (lag) => lag.percentile(50),
  p90: (lag) => lag.percentile(90),
  p99: (lag) => lag.percentile(99),
}

/** How late the event loop was since this was last written down. */
export function openLoopGauges(registry: Registry): () => void {
  const lag = createHistogram()
  watchLoopLag((lateMs) => {
    lag.record(Math.max(1, Math.round(lateMs * 1_000)))
    return false
  })

  const gauges = Object.entries(FIGURES).map(([figure, read]) => {
    const name = `nodejs_eventloop_lag_${figure}_seconds`
    registry.removeSingleMetric(name)
    return { read, gauge: new Gauge({ name, help: `How late the event loop was, ${figure}.`, registers: [registry] }) }
  })
  return () => {
    if (lag.count === 0) return
    for (const { read, gauge } of gauges) gauge.set(read(lag) / MICROSECONDS)
    lag.reset()
  }
}
