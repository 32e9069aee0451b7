import { Gauge, Histogram, type Registry } from 'prom-client'
import { onConnectionAcquired } from '../persistence/database/database.js'
import type { Services } from '../services/services.js'

/** The pool of the database that is written to. */
const PRIMARY = 'primary'

export function registerPoolMetrics(registry: Registry, db: Services['db']): void {
  const registers = [registry]
  new Gauge({
    name: 'pod_db_connections',
    help: 'Connections of this process to the database, and statements that wait for one.',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      const { pool } = db.client
      this.set({ pool: PRIMARY, state: 'used' }, pool?.numUsed() ?? 0)
      this.set({ pool: PRIMARY, state: 'free' }, pool?.numFree() ?? 0)
      this.set({ pool: PRIMARY, state: 'waiting' }, pool?.numPendingAcquires() ?? 0)
    },
  })
  const seconds = new Histogram({
    name: 'pod_db_acquire_seconds',
    help: 'How long a statement waited for a connection.',
    labelNames: ['pool'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
    registers,
  })
  onConnectionAcquired(db, (ms) => seconds.observe({ pool: PRIMARY }, ms / 1_000))
}
