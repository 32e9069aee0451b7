import { Counter, Histogram, type Registry } from 'prom-client'
import type { DeliveryOutcome } from './pod-health.js'

/** The worker slots for proven pods, and those for all other pods. */
export type DeliveryQueue = 'outbound' | 'outbound-slow'

// The label `lane` has the name of the queue. Dashboards of operators use this name.
const deliveries = new Counter({
  name: 'pod_delivery_tries_total',
  help: 'Delivery attempts, by lane and outcome.',
  labelNames: ['lane', 'outcome'],
  registers: [],
})

export function recordDelivery(queue: DeliveryQueue, { kind }: DeliveryOutcome, ms: number): void {
  // The values of the label `outcome` are fixed: dashboards and alerts of operators use them.
  const outcome = kind === 'delivered' ? 'arrived' : kind
  deliveries.inc({ lane: queue, outcome })
  exchangeSeconds.observe({ lane: queue, outcome }, ms / 1_000)
}

const exchangeSeconds = new Histogram({
  name: 'pod_delivery_seconds',
  help: 'Duration of one delivery request, by lane and outcome.',
  labelNames: ['lane', 'outcome'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  registers: [],
})

const latency = new Histogram({
  name: 'pod_commit_to_delivered_seconds',
  help: 'Time from the commit of a delivery to its arrival, outages of the other pod included.',
  labelNames: ['channel'],
  buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3_600, 86_400, 1_209_600],
  registers: [],
})

export function recordDeliveryLatency({
  isPublic,
  writtenAt,
}: {
  readonly isPublic: boolean
  readonly writtenAt: Date
}): void {
  const seconds = Math.max(0, Date.now() - writtenAt.getTime()) / 1_000
  latency.observe({ channel: isPublic ? 'public' : 'private' }, seconds)
}

export function registerDeliveryMetrics(registry: Registry): void {
  registry.registerMetric(deliveries)
  registry.registerMetric(exchangeSeconds)
  registry.registerMetric(latency)
}
