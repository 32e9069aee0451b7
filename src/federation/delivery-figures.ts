import { Counter, type Registry } from 'prom-client'
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

export function showDeliveryFigures(registry: Registry): void {
  registry.registerMetric(deliveries)
}
