import { Counter, Histogram, type Registry } from 'prom-client'
import type { Outcome } from './pod-health.js'

/** Which slots a drain takes: those for pods that have proven to answer, or those for all others. */
export type Lane = 'outbound' | 'outbound-slow'

/** What this process has tried to deliver. */
const deliveries = new Counter({
  name: 'pod_delivery_tries_total',
  help: 'Tries to deliver something to another pod, by lane and by what became of them.',
  labelNames: ['lane', 'outcome'],
  registers: [],
})

export function countDelivery(lane: Lane, { kind: outcome }: Outcome): void {
  deliveries.inc({ lane, outcome })
}

const latency = new Histogram({
  name: 'pod_delivery_seconds',
  help: 'From the moment a delivery was written to its arrival, absences of the other pod included.',
  labelNames: ['lane'],
  buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3_600, 86_400],
  registers: [],
})

export function noteArrival(lane: Lane, writtenAt: Date): void {
  latency.observe({ lane }, Math.max(0, Date.now() - writtenAt.getTime()) / 1_000)
}

export function showDeliveryFigures(registry: Registry): void {
  registry.registerMetric(deliveries)
  registry.registerMetric(latency)
}
