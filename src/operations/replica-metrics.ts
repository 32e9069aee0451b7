import { Counter, Gauge, type Registry } from 'prom-client'
import type { ReadReplica } from '../persistence/database/read-replica.js'

/** Metrics of reads by database and of the age of the replica. */
export function registerReplicaMetrics(registry: Registry, replica: ReadReplica): void {
  new Counter({
    name: 'pod_lists_read_total',
    help: 'Lists, by the database that was tried first; failed: those that the replica did not return.',
    labelNames: ['database'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [database, lists] of Object.entries(replica.status().lists)) this.inc({ database }, lists)
    },
  })
  new Gauge({
    name: 'pod_replica_age_seconds',
    help: 'How old what the replica shows may be; not there: it is not used.',
    registers: [registry],
    collect() {
      const { age } = replica.status()
      if (age === undefined) this.remove()
      else this.set(age)
    },
  })
}
