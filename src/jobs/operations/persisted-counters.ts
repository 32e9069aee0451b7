import type { Registry } from 'prom-client'
import { addFigures, type Figure } from '../../persistence/operations/figures.js'
import type { Pod } from '../../pod/pod.js'
import { singleFlight } from '../../throttling/single-flight.js'

/** Counters that somebody asks for who is not in the process that counts. */
export const PERSISTED_COUNTERS = {
  /** Messages received by the inbound endpoint of a web process. */
  received: 'pod_received_messages_total',
  takenIn: 'pod_inbound_messages_total',
  tries: 'pod_delivery_tries_total',
  jobs: 'pod_jobs_run_total',
} as const

const EVERY_MS = 5_000

/** Lets the database know, every few seconds and at the end, what this process has counted. What it has not heard, it hears later. */
export function persistCounters(
  { db, log }: Pick<Pod, 'db' | 'log'>,
  registry: Registry,
): { readonly keep: () => Promise<void>; close(): Promise<void> } {
  const told = new Map<string, number>()

  async function tell(): Promise<void> {
    const counted = await countedBy(registry)
    const news = counted.flatMap((figure): Figure[] => {
      const count = figure.count - (told.get(keyOf(figure)) ?? 0)
      return count > 0 ? [{ ...figure, count }] : []
    })
    await addFigures(db, news)
    for (const figure of counted) told.set(keyOf(figure), figure.count)
  }

  /** Two at the same time would add the same counts twice. */
  const keep = singleFlight(() => tell().catch((err) => log.debug({ err }, 'could not keep what was counted')))

  const timer = setInterval(keep, EVERY_MS)
  return {
    keep,
    async close() {
      clearInterval(timer)
      await keep() // the one that runs may have read the counters too early
      await keep()
    },
  }
}

async function countedBy(registry: Registry): Promise<readonly Figure[]> {
  const metrics = Object.values(PERSISTED_COUNTERS).map((name) => ({ name, metric: registry.getSingleMetric(name) }))
  const figures = await Promise.all(
    metrics.map(async ({ name, metric }) => {
      const values = metric === undefined ? [] : (await metric.get()).values
      return values.map(({ labels, value }) => ({ name, labels: labels as Figure['labels'], count: value })) // ours all have one
    }),
  )
  return figures.flat()
}

function keyOf({ name, labels }: Figure): string {
  return `${name} ${JSON.stringify(labels)}`
}
