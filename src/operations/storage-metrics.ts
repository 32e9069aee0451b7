import { Counter, type Registry } from 'prom-client'
import type { CountedPictures } from '../persistence/photos/counted-pictures.js'

/** Metrics of the store of pictures. */
export function registerStorageMetrics(registry: Registry, { failures }: Pick<CountedPictures, 'failures'>): void {
  new Counter({
    name: 'pod_storage_errors_total',
    help: 'Failures of the store of pictures.',
    labelNames: ['operation'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [operation, count] of failures) this.inc({ operation }, count)
    },
  })
}
