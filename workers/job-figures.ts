import { Counter, type Registry } from 'prom-client'
import type { QueueName } from '../src/jobs/queue-names.js'

const jobs = new Counter({
  name: 'pod_jobs_run_total',
  help: 'Jobs that this process has run, by queue and by how they ended; one that failed may be tried again.',
  labelNames: ['queue', 'end'],
  registers: [],
})

export function countJob(queue: QueueName, end: 'done' | 'failed'): void {
  jobs.inc({ queue, end })
}

export function showJobFigures(registry: Registry): void {
  registry.registerMetric(jobs)
}
