import { Counter, Histogram, type Registry } from 'prom-client'
import type { QueueName } from '../src/jobs/queues/queue-names.js'

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600]

const jobs = new Counter({
  name: 'pod_jobs_run_total',
  help: 'Jobs that this process has run, by queue and by how they ended; one that failed may be tried again. put_back: it needs a newer version.',
  labelNames: ['queue', 'end'],
  registers: [],
})

const seconds = new Histogram({
  name: 'pod_job_seconds',
  help: 'How long jobs ran in this process, by queue and by how they ended.',
  labelNames: ['queue', 'end'],
  buckets: SECONDS,
  registers: [],
})

const waitSeconds = new Histogram({
  name: 'pod_job_wait_seconds',
  help: 'How long jobs waited for a worker from the moment they were due, by queue.',
  labelNames: ['queue'],
  buckets: SECONDS,
  registers: [],
})

/** A job whose data Redis has evicted has no time: it is not counted. */
export function recordJobWait(queue: QueueName, ms: number): void {
  if (!Number.isNaN(ms)) waitSeconds.observe({ queue }, Math.max(0, ms) / 1_000)
}

export function countJob(queue: QueueName, end: 'done' | 'failed' | 'put_back', ms: number): void {
  jobs.inc({ queue, end })
  seconds.observe({ queue, end }, ms / 1_000)
}

export function registerJobMetrics(registry: Registry): void {
  registry.registerMetric(jobs)
  registry.registerMetric(seconds)
  registry.registerMetric(waitSeconds)
}
