import { Counter, Gauge, type Registry } from 'prom-client'
import type { InboundEndpoint } from '../web/routes/federation/inbound-endpoint.js'

/** Metrics of the inbound endpoint of this process. */
export function registerInboundEndpointMetrics(registry: Registry, endpoint: InboundEndpoint): void {
  new Counter({
    name: 'pod_received_messages_total',
    help: 'Messages of other pods, by what became of them at the endpoint.',
    labelNames: ['channel', 'outcome'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { channel, outcome, messages } of endpoint.counts()) this.inc({ channel, outcome }, messages)
    },
  })
  new Gauge({
    name: 'pod_inbound_bytes',
    help: 'Bytes of accepted messages that are not stored yet: collected by this process, and queued by its estimate.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { heldBytes, queuedBytes } = endpoint.packing.size()
      this.set({ state: 'gathered' }, heldBytes)
      this.set({ state: 'queued' }, queuedBytes)
    },
  })
  new Gauge({
    name: 'pod_inbound_messages',
    help: 'Messages in the inbound queues, by the estimate of this process.',
    registers: [registry],
    collect() {
      this.set(endpoint.packing.size().queuedMessages)
    },
  })
}
