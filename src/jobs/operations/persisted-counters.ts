import type { Registry } from 'prom-client'
import { addFigures, type Figure } from '../../persistence/operations/figures.js'
import type { Pod } from '../../pod/pod.js'
import { singleFlight } from '../../throttling/single-flight.js'

/** Counters that other processes read. */
export const PERSISTED_COUNTERS = {
  /** Messages received by the inbound endpoint of a web process. */
  received: 'pod_received_messages_total',
  takenIn: 'pod_inbound_messages_total',
  tries: 'pod_delivery_tries_total',
  jobs: 'pod_jobs_run_total',
} as const

const EVERY_MS = 5_000

/** Adds the counts of this process to the database, every few seconds and at the end. After an error they are added later. */
export function persistCounters(
  { db, log }: Pick<Pod, 'db' | 'log'>,
  registry: Registry,
): { readonly keep: () => Promise<void>; close(): Promise<void> } {
  const persisted = new Map<string, number>()

  async function persist(): Promise<void> {
    const counted = await countedBy(registry)
    const changes = counted.flatMap((figure): Figure[] => {
      const count = figure.count - (persisted.get(keyOf(figure)) ?? 0)
      return count > 0 ? [{ ...figure, count }] : []
    })
    await addFigures(db, changes)
    for (const figure of counted) persisted.set(keyOf(figure), figure.count)
  }

  /** Two at the same time would add the same counts twice. */
  const keep = singleFlight(() => persist().catch((err) => log.debug({ err }, 'counters not persisted')))

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
      return values.map(({ labels, value }) => ({ name, labels: labels as Figure['labels'], count: value })) // every counter has labels
    }),
  )
  return figures.flat()
}

function keyOf({ name, labels }: Figure): string {
  return `${name} ${JSON.stringify(labels)}`
}
