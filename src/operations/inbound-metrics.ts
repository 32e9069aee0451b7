import { Counter, Gauge, type Registry } from 'prom-client'
import type { InboundEndpoint } from '../web/routes/federation/inbound-endpoint.js'

/** What came to the door of this process, and what it holds because of that. */
export function watchInboundEndpoint(registry: Registry, door: InboundEndpoint): void {
  new Counter({
    name: 'pod_received_messages_total',
    help: 'Messages of other pods, by what became of them at the door.',
    labelNames: ['channel', 'outcome'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { channel, outcome, messages } of door.counts()) this.inc({ channel, outcome }, messages)
    },
  })
  new Gauge({
    name: 'pod_inbound_bytes',
    help: 'Messages that are accepted and not taken in: gathered by this process, and queued as far as it can tell.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { gatheredBytes, queuedBytes } = door.packing.facts()
      this.set({ state: 'gathered' }, gatheredBytes)
      this.set({ state: 'queued' }, queuedBytes)
    },
  })
  new Gauge({
    name: 'pod_inbound_messages',
    help: 'Messages in the inbound queues, as far as this process can tell.',
    registers: [registry],
    collect() {
      this.set(door.packing.facts().queuedMessages)
    },
  })
}
