import type { RecordableHistogram } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'
import { recordLoopLag } from '../logging/loop-lag.js'

/** Effectively disables the library's sampler, which wakes idle processes. */
export const LIBRARY_SAMPLER_OFF = { eventLoopMonitoringPrecision: 2 ** 31 - 1 }

const MICROSECONDS = 1_000_000

/** Statistics under the names that the library uses. */
const STATISTICS: Readonly<Record<string, (lag: RecordableHistogram) => number>> = {
  min: ({ min }) => min,
  max: ({ max }) => max,
  mean: ({ mean }) => mean,
  stddev: ({ stddev }) => stddev,
  p50: (lag) => lag.percentile(50),
  p90: (lag) => lag.percentile(90),
  p99: (lag) => lag.percentile(99),
}

/** Registers the gauges of event loop lag; the returned function updates them with the lag since the last call. */
export function registerLoopGauges(registry: Registry): () => void {
  const { lag } = recordLoopLag()

  const gauges = Object.entries(STATISTICS).map(([statistic, read]) => {
    const name = `nodejs_eventloop_lag_${statistic}_seconds`
    registry.removeSingleMetric(name)
    return {
      read,
      gauge: new Gauge({ name, help: `How late the event loop was, ${statistic}.`, registers: [registry] }),
    }
  })
  return () => {
    if (lag.count === 0) return
    for (const { read, gauge } of gauges) gauge.set(read(lag) / MICROSECONDS)
    lag.reset()
  }
}
