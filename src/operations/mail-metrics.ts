import { Gauge, type Registry } from 'prom-client'
import { findTransportState } from '../persistence/mail/transport-state.js'
import type { MonitoringServices } from '../services/services.js'

/** 1 while the mail server refuses this pod. Without SMTP_URL there is no such metric. */
export function registerMailMetric(registry: Registry, { config, db, log }: MonitoringServices): void {
  if (config.mail === undefined) return
  new Gauge({
    name: 'pod_mail_failing',
    help: 'Whether the mail server refuses this pod.',
    registers: [registry],
    async collect() {
      try {
        this.set((await findTransportState(db)).failingSince === null ? 0 : 1)
      } catch (err) {
        log.debug({ err }, 'mail server metrics unavailable')
        this.remove()
      }
    },
  })
}
