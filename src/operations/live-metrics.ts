import { Gauge, type Registry } from 'prom-client'
import type { LiveChannel } from '../web/live/channel.js'

export function registerLiveMetrics(registry: Registry, live: LiveChannel): void {
  new Gauge({
    name: 'pod_live_listeners',
    help: 'Streams of events that clients keep open at this process.',
    registers: [registry],
    collect() {
      this.set(live.listeners)
    },
  })
}
