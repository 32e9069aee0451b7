import {
  HISTORY_MINUTES,
  type HistoricCounter,
  listFigureHistory,
  listWaitingHistory,
} from '../../persistence/operations/counter-history.js'
import type { Services } from '../../services/services.js'
import { sum } from '../sum.js'
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
/** Complete intervals of a day: the current one is left out. */
const INTERVALS = (24 * 60) / HISTORY_MINUTES - 1

/** Reads throughput, latency and waiting work of the last 24 hours. */
export async function activityHistory({ db, now }: Pick<Services, 'db' | 'now'>): Promise<ActivityHistory> {
  const { received, inboundMessages, deliveryAttempts } = PERSISTED_COUNTERS
  const [counters, samples] = await Promise.all([
    listFigureHistory(db, [received, inboundMessages, deliveryAttempts, PERSISTED_HISTOGRAMS.wait]),
    listWaitingHistory(db),
  ])
  const last = Math.floor(now().getTime() / WIDTH_MS) * WIDTH_MS - WIDTH_MS
  const times = Array.from({ length: INTERVALS }, (_, index) => new Date(last - (INTERVALS - 1 - index) * WIDTH_MS))
  const groups = new Map<number, HistoricCounter[]>()
  for (const counter of counters) {
    const group = groups.get(counter.at.getTime())
    if (group === undefined) groups.set(counter.at.getTime(), [counter])
    else group.push(counter)
  }
  const mapIntervals = <Value>(read: (counters: readonly HistoricCounter[]) => Value) =>
    times.map((time) => read(groups.get(time.getTime()) ?? []))
  const perMinute = (name: string, wanted: (labels: HistoricCounter['labels']) => boolean) =>
    mapIntervals((some) => {
      const matching = some.filter((counter) => counter.name === name && wanted(counter.labels))
      return sum(matching.map(({ count }) => count)) / HISTORY_MINUTES
    })
  const waitingAt = new Map(samples.map(({ at, waiting }) => [at.getTime(), waiting]))

  return {
    times,
    received: perMinute(received, ({ outcome }) => outcome === 'accepted'),
    stored: perMinute(inboundMessages, ({ end }) => end === 'stored'),
    delivered: perMinute(deliveryAttempts, ({ outcome }) => outcome === 'arrived'),
    failedDeliveries: perMinute(deliveryAttempts, ({ outcome }) => outcome !== 'arrived'),
    inboundWait: mapIntervals((some) =>
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
