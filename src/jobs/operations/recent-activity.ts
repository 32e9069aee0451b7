import { type ActivityCounter, sumCounters } from '../../persistence/operations/activity-counters.js'
import type { Services } from '../../services/services.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'
import { PERSISTED_COUNTERS } from './persisted-counters.js'

type Counts = Readonly<Record<string, number>>

/** The recent work of all processes, from their persisted counters. */
export interface RecentActivity {
  /** Over the last five minutes: messages of the inbound queues, jobs of all others. */
  readonly perMinute: Readonly<Record<QueueName, number>>
  /** All figures below are of the last hour. Received messages by outcome at the inbound endpoint. */
  readonly received: Counts
  readonly inboundResults: {
    readonly stored: number
    /** Repeated and ignored messages. */
    readonly ignored: number
    /** The other outcomes by fault. */
    readonly rejected: Counts
    readonly waiting: Counts
    readonly dead: Counts
  }
  /** Delivery attempts by queue and outcome. */
  readonly deliveryAttempts: Readonly<Record<string, Counts>>
}

const RATE_MINUTES = 5
const MINUTES_PER_HOUR = 60

export async function readRecentActivity({ db }: Pick<Services, 'db'>): Promise<RecentActivity> {
  const [recent, hour] = await Promise.all([
    sumCounters(db, { minutes: RATE_MINUTES, full: true }),
    sumCounters(db, { minutes: MINUTES_PER_HOUR, full: false }),
  ])
  const countersWithEnd = (...ends: readonly string[]) =>
    hour.filter(
      ({ name, labels }) => name === PERSISTED_COUNTERS.inboundMessages && ends.includes(String(labels['end'])),
    )
  const attempts = hour.filter(({ name }) => name === PERSISTED_COUNTERS.deliveryAttempts)
  const queues = [...new Set(attempts.map(({ labels }) => String(labels['lane'])))]
  return {
    perMinute: ratePerMinute(recent),
    received: countByLabel(
      hour.filter(({ name }) => name === PERSISTED_COUNTERS.received),
      'outcome',
    ),
    inboundResults: {
      stored: sumCounts(countersWithEnd('stored')),
      ignored: sumCounts(countersWithEnd('repeated', 'ignored')),
      rejected: countByLabel(countersWithEnd('rejected'), 'fault'),
      waiting: countByLabel(countersWithEnd('waiting'), 'fault'),
      dead: countByLabel(countersWithEnd('dead'), 'fault'),
    },
    deliveryAttempts: Object.fromEntries(
      queues.map((queue) => [
        queue,
        countByLabel(
          attempts.filter(({ labels }) => labels['lane'] === queue),
          'outcome',
        ),
      ]),
    ),
  }
}

/** Inbound jobs carry many messages, so that messages are counted. */
function ratePerMinute(counters: readonly ActivityCounter[]): RecentActivity['perMinute'] {
  const rates = QUEUES.map((queue) => {
    const counter =
      queue === 'inbound' || queue === 'inbound-private' ? PERSISTED_COUNTERS.inboundMessages : PERSISTED_COUNTERS.jobs
    const count = sumCounts(counters.filter(({ name, labels }) => name === counter && labels['queue'] === queue))
    return [queue, count / RATE_MINUTES]
  })
  return Object.fromEntries(rates) as Record<QueueName, number> // one for each of QUEUES
}

function countByLabel(counters: readonly ActivityCounter[], label: string): Counts {
  const values = [...new Set(counters.map(({ labels }) => String(labels[label])))]
  return Object.fromEntries(
    values.map((value) => [value, sumCounts(counters.filter(({ labels }) => String(labels[label]) === value))]),
  )
}

function sumCounts(counters: readonly ActivityCounter[]): number {
  return counters.reduce((total, { count }) => total + count, 0)
}
