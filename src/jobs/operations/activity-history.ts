import {
  HISTORY_MINUTES,
  type HistoricFigure,
  listFigureHistory,
  listWaitingHistory,
} from '../../persistence/operations/figure-history.js'
import type { Pod } from '../../pod/pod.js'
import { PERSISTED_COUNTERS, PERSISTED_HISTOGRAMS } from './persisted-counters.js'
import { quantile } from './quantile.js'
import { parseBucketBound } from './queue-rates.js'

/** One value for each interval of the last day, the oldest first. */
export interface ActivityHistory {
  /** The beginnings of the intervals. */
  readonly times: readonly Date[]
  /** Messages a minute. */
  readonly received: readonly number[]
  readonly stored: readonly number[]
  readonly delivered: readonly number[]
  readonly failedDeliveries: readonly number[]
  /** Seconds below which 95 of 100 jobs of the inbound queues waited; null: there were none. */
  readonly inboundWait: readonly (number | null)[]
  /** The most waiting jobs of all queues together. */
  readonly waiting: readonly number[]
}

const WIDTH_MS = HISTORY_MINUTES * 60_000
/** Without the current one, which is not complete. */
const INTERVALS = (24 * 60) / HISTORY_MINUTES - 1

/** Reads throughput, latency and waiting work of the last 24 hours. */
export async function activityHistory({ db, now }: Pick<Pod, 'db' | 'now'>): Promise<ActivityHistory> {
  const { received, inboundMessages, deliveryAttempts } = PERSISTED_COUNTERS
  const [figures, samples] = await Promise.all([
    listFigureHistory(db, [received, inboundMessages, deliveryAttempts, PERSISTED_HISTOGRAMS.wait]),
    listWaitingHistory(db),
  ])
  const last = Math.floor(now().getTime() / WIDTH_MS) * WIDTH_MS - WIDTH_MS
  const times = Array.from({ length: INTERVALS }, (_, index) => new Date(last - (INTERVALS - 1 - index) * WIDTH_MS))
  const groups = new Map<number, HistoricFigure[]>()
  for (const figure of figures) {
    const group = groups.get(figure.at.getTime())
    if (group === undefined) groups.set(figure.at.getTime(), [figure])
    else group.push(figure)
  }
  const each = <Value>(read: (figures: readonly HistoricFigure[]) => Value) =>
    times.map((time) => read(groups.get(time.getTime()) ?? []))
  const perMinute = (name: string, wanted: (labels: HistoricFigure['labels']) => boolean) =>
    each((some) => sum(some.filter((figure) => figure.name === name && wanted(figure.labels))) / HISTORY_MINUTES)
  const waitingAt = new Map(samples.map(({ at, waiting }) => [at.getTime(), waiting]))

  return {
    times,
    received: perMinute(received, ({ outcome }) => outcome === 'accepted'),
    stored: perMinute(inboundMessages, ({ end }) => end === 'stored'),
    delivered: perMinute(deliveryAttempts, ({ outcome }) => outcome === 'arrived'),
    failedDeliveries: perMinute(deliveryAttempts, ({ outcome }) => outcome !== 'arrived'),
    inboundWait: each((some) =>
      quantile(
        some
          .filter(
            ({ name, labels }) => name === PERSISTED_HISTOGRAMS.wait && String(labels['queue']).startsWith('inbound'),
          )
          .map(({ labels, count }) => ({ bound: parseBucketBound(labels['le']), count })),
        0.95,
      ),
    ),
    waiting: times.map((time) => waitingAt.get(time.getTime()) ?? 0),
  }
}

function sum(figures: readonly HistoricFigure[]): number {
  return figures.reduce((total, { count }) => total + count, 0)
}
