import { Counter, type Registry } from 'prom-client'
import type { ConnectionClosure } from './connection-limit.js'

export interface ClosureCounts {
  count(reason: ConnectionClosure): void
  all(): Iterable<readonly [ConnectionClosure, number]>
}

/** Counts the connections that this process closes to keep places free. */
export function openClosureCounts(): ClosureCounts {
  const counts = new Map<ConnectionClosure, number>()
  return {
    count: (reason) => void counts.set(reason, (counts.get(reason) ?? 0) + 1),
    all: () => counts,
  }
}

export function registerClosureMetrics(registry: Registry, all: ClosureCounts['all']): void {
  new Counter({
    name: 'pod_http_closed_connections_total',
    help: 'Connections closed to keep places free: too many of one address, idle while places were short, or no place left.',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [reason, count] of all()) this.inc({ reason }, count)
    },
  })
}
