import { type Figure, sumFigures } from '../../persistence/operations/figures.js'
import type { Pod } from '../../pod/pod.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'
import { PERSISTED_COUNTERS } from './persisted-counters.js'

type Counts = Readonly<Record<string, number>>

/** The recent work of all processes, from their persisted counters. */
export interface RecentActivity {
  /** Over the last five minutes: messages of the inbound queues, jobs of all others. */
  readonly perMinute: Readonly<Record<QueueName, number>>
  /** All figures below are of the last hour. Received messages by outcome at the inbound endpoint. */
  readonly received: Counts
  readonly takenIn: {
    readonly stored: number
    /** Repeated and ignored messages. */
    readonly passedOver: number
    /** The other outcomes by fault. */
    readonly wrong: Counts
    readonly waited: Counts
    readonly dead: Counts
  }
  /** Delivery attempts by queue and outcome. */
  readonly tries: Readonly<Record<string, Counts>>
}

const RATE_MINUTES = 5
const HOUR = 60

export async function recentActivity({ db }: Pick<Pod, 'db'>): Promise<RecentActivity> {
  const [recent, hour] = await Promise.all([
    sumFigures(db, { minutes: RATE_MINUTES, full: true }),
    sumFigures(db, { minutes: HOUR, full: false }),
  ])
  const end = (...ends: readonly string[]) =>
    hour.filter(({ name, labels }) => name === PERSISTED_COUNTERS.takenIn && ends.includes(String(labels['end'])))
  const tries = hour.filter(({ name }) => name === PERSISTED_COUNTERS.tries)
  const queues = [...new Set(tries.map(({ labels }) => String(labels['lane'])))]
  return {
    perMinute: perMinute(recent),
    received: byLabel(
      hour.filter(({ name }) => name === PERSISTED_COUNTERS.received),
      'outcome',
    ),
    takenIn: {
      stored: sum(end('stored')),
      passedOver: sum(end('repeated', 'over')),
      wrong: byLabel(end('wrong'), 'fault'),
      waited: byLabel(end('waiting'), 'fault'),
      dead: byLabel(end('dead'), 'fault'),
    },
    tries: Object.fromEntries(
      queues.map((queue) => [
        queue,
        byLabel(
          tries.filter(({ labels }) => labels['lane'] === queue),
          'outcome',
        ),
      ]),
    ),
  }
}

/** Inbound jobs carry many messages, so that messages are counted. */
function perMinute(figures: readonly Figure[]): RecentActivity['perMinute'] {
  const rates = QUEUES.map((queue) => {
    const counter =
      queue === 'inbound' || queue === 'inbound-private' ? PERSISTED_COUNTERS.takenIn : PERSISTED_COUNTERS.jobs
    const count = sum(figures.filter(({ name, labels }) => name === counter && labels['queue'] === queue))
    return [queue, count / RATE_MINUTES]
  })
  return Object.fromEntries(rates) as Record<QueueName, number> // one for each of QUEUES
}

function byLabel(figures: readonly Figure[], label: string): Counts {
  const values = [...new Set(figures.map(({ labels }) => String(labels[label])))]
  return Object.fromEntries(
    values.map((value) => [value, sum(figures.filter(({ labels }) => String(labels[label]) === value))]),
  )
}

function sum(figures: readonly Figure[]): number {
  return figures.reduce((total, { count }) => total + count, 0)
}
