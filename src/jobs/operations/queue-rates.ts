import { type RecentCounter, sumRecentCounters } from '../../persistence/operations/counter-history.js'
import type { Services } from '../../services/services.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'
import { sum } from '../sum.js'
import { PERSISTED_COUNTERS, PERSISTED_HISTOGRAMS } from './persisted-counters.js'
import { quantile } from './quantile.js'

/** Milliseconds below which half, and 95 of 100, jobs of the last hour stayed; null: there were none. */
export interface JobTimes {
  readonly p50: number | null
  readonly p95: number | null
}

/** Jobs a minute, over the last minute, the last 15 and the last 60. */
export interface PerMinute {
  readonly minute: number
  readonly quarter: number
  readonly hour: number
}

/** How a run of a job ends: also the label `end` of `pod_jobs_run_total`. */
const JOB_ENDS = ['done', 'failed', 'put_back'] as const

export interface QueueRates {
  /** Runs of jobs that ended, in all and by how they ended. */
  readonly perMinute: PerMinute & { readonly byEnd: Readonly<Record<(typeof JOB_ENDS)[number], PerMinute>> }
  readonly wait: JobTimes
  readonly run: JobTimes
}

/** The work of all processes by queue, from their persisted counters: the same on both back ends. */
export async function readQueueRates({ db }: Pick<Services, 'db'>): Promise<Readonly<Record<QueueName, QueueRates>>> {
  const { wait, run } = PERSISTED_HISTOGRAMS
  const counters = await sumRecentCounters(db, [PERSISTED_COUNTERS.jobs, wait, run])
  const rates = QUEUES.map((queue) => {
    const countersNamed = (name: string) =>
      counters.filter((counter) => counter.name === name && counter.labels['queue'] === queue)
    const jobs = countersNamed(PERSISTED_COUNTERS.jobs)
    const byEnd = Object.fromEntries(
      JOB_ENDS.map((end) => [end, perMinuteOf(jobs.filter(({ labels }) => labels['end'] === end))]),
    ) as QueueRates['perMinute']['byEnd'] // one for each of JOB_ENDS
    const perMinute = { ...perMinuteOf(jobs), byEnd }
    return [queue, { perMinute, wait: timesOf(countersNamed(wait)), run: timesOf(countersNamed(run)) }] as const
  })
  return Object.fromEntries(rates) as Record<QueueName, QueueRates> // one for each of QUEUES
}

/** Messages of other pods a minute that were accepted in the last 15 minutes, by all processes. */
export async function readAcceptedRate({ db }: Pick<Services, 'db'>): Promise<number> {
  const counters = await sumRecentCounters(db, [PERSISTED_COUNTERS.received])
  return perMinuteOf(counters.filter(({ labels }) => labels['outcome'] === 'accepted')).quarter
}

function perMinuteOf(counters: readonly RecentCounter[]): PerMinute {
  return {
    minute: sum(counters.map(({ minute }) => minute)),
    quarter: sum(counters.map(({ quarter }) => quarter)) / 15,
    hour: sum(counters.map(({ hour }) => hour)) / 60,
  }
}

function timesOf(buckets: readonly RecentCounter[]): JobTimes {
  const counts = buckets.map(({ labels, hour }) => ({ bound: parseBucketBound(labels['le']), count: hour }))
  return { p50: milliseconds(quantile(counts, 0.5)), p95: milliseconds(quantile(counts, 0.95)) }
}

export function parseBucketBound(label: unknown): number {
  return label === '+Inf' ? Number.POSITIVE_INFINITY : Number(label)
}

function milliseconds(seconds: number | null): number | null {
  return seconds === null ? null : Math.round(seconds * 1_000)
}
