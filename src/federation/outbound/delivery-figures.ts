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

export function countDelivery(lane: Lane, { kind: outcome }: Outcome, ms: number): void {
  deliveries.inc({ lane, outcome })
  exchangeSeconds.observe({ lane, outcome }, ms / 1_000)
}

const exchangeSeconds = new Histogram({
  name: 'pod_delivery_seconds',
  help: 'How long one delivery request took, by lane and outcome.',
  labelNames: ['lane', 'outcome'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  registers: [],
})

const latency = new Histogram({
  name: 'pod_commit_to_delivered_seconds',
  help: 'From the moment a delivery was written to its arrival, outages of the other pod included.',
  labelNames: ['channel'],
  buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3_600, 86_400, 1_209_600],
  registers: [],
})

export function noteArrival({ isPublic, writtenAt }: { readonly isPublic: boolean; readonly writtenAt: Date }): void {
  const seconds = Math.max(0, Date.now() - writtenAt.getTime()) / 1_000
  latency.observe({ channel: isPublic ? 'public' : 'private' }, seconds)
}

export function showDeliveryFigures(registry: Registry): void {
  registry.registerMetric(deliveries)
  registry.registerMetric(exchangeSeconds)
  registry.registerMetric(latency)
}
