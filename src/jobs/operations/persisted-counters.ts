import type { Registry } from 'prom-client'
import { singleFlight } from '../../concurrency/single-flight.js'
import { type ActivityCounter, addCounters } from '../../persistence/operations/activity-counters.js'
import type { Services } from '../../services/services.js'
import { savePodActivity } from './pod-activity.js'

/** Counters that other processes read. */
export const PERSISTED_COUNTERS = {
  /** Messages received by the inbound endpoint of a web process. */
  received: 'pod_received_messages_total',
  inboundMessages: 'pod_inbound_messages_total',
  deliveryAttempts: 'pod_delivery_tries_total',
  jobs: 'pod_jobs_run_total',
} as const

/** Histograms that other processes read: the observations by bucket, not cumulative. */
export const PERSISTED_HISTOGRAMS = { wait: 'pod_job_wait_seconds', run: 'pod_job_seconds' } as const

const INTERVAL_MS = 5_000

/**
 * Adds the counts of this process, and those by pod, to the database, every few seconds and at the end. After an error they are added
 * later.
 */
export function persistCounters(
  { db, log }: Pick<Services, 'db' | 'log'>,
  registry: Registry,
): { readonly keep: () => Promise<void>; close(): Promise<void> } {
  const persistedCounts = new Map<string, number>()

  async function persist(): Promise<void> {
    const counters = await countedBy(registry)
    const changes = counters.flatMap((counter): ActivityCounter[] => {
      const count = counter.count - (persistedCounts.get(keyOf(counter)) ?? 0)
      return count > 0 ? [{ ...counter, count }] : []
    })
    await addCounters(db, changes)
    for (const counter of counters) persistedCounts.set(keyOf(counter), counter.count)
    await savePodActivity({ db })
  }

  /** Two runs at the same time would add the same counts twice. */
  const keep = singleFlight(() => persist().catch((err) => log.debug({ err }, 'counters not persisted')))

  const timer = setInterval(keep, INTERVAL_MS)
  return {
    keep,
    async close() {
      clearInterval(timer)
      await keep() // the run that this call has joined may have read the counters too early
      await keep()
    },
  }
}

async function countedBy(registry: Registry): Promise<readonly ActivityCounter[]> {
  const counters = Object.values(PERSISTED_COUNTERS).map(async (name) =>
    (await valuesOf(registry, name)).map(({ labels, value }) => ({ name, labels, count: value })),
  )
  const histograms = Object.values(PERSISTED_HISTOGRAMS).map(async (name) =>
    bucketsOf(name, await valuesOf(registry, name)),
  )
  return (await Promise.all([...counters, ...histograms])).flat()
}

interface MetricValue {
  readonly labels: ActivityCounter['labels']
  readonly value: number
  /** Name of a part of a histogram, with its suffix. */
  readonly metricName?: string
}

async function valuesOf(registry: Registry, name: string): Promise<readonly MetricValue[]> {
  const metric = registry.getSingleMetric(name)
  return metric === undefined ? [] : ((await metric.get()).values as readonly MetricValue[]) // every metric here has labels
}

/** The buckets of each series come in the order of their bounds, and each includes the ones before. */
function bucketsOf(name: string, values: readonly MetricValue[]): readonly ActivityCounter[] {
  const previousCounts = new Map<string, number>()
  return values
    .filter(({ metricName }) => metricName === `${name}_bucket`)
    .map(({ labels, value }) => {
      const { le = '+Inf', ...series } = labels
      const key = JSON.stringify(series)
      const count = value - (previousCounts.get(key) ?? 0)
      previousCounts.set(key, value)
      return { name, labels: { ...series, le: String(le) }, count }
    })
}

function keyOf({ name, labels }: ActivityCounter): string {
  return `${name} ${JSON.stringify(labels)}`
}
