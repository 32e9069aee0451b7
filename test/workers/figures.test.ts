import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { noteBatch, showReceiveFigures } from '../../src/federation/inbound/receive-figures.js'
import { countDelivery, noteArrival, showDeliveryFigures } from '../../src/federation/outbound/delivery-figures.js'
import { countJob, showJobFigures } from '../../workers/job-metrics.js'

it('a worker tells how long jobs run, how old messages are at their commit, and deliveries at their arrival', async () => {
  const registry = new Registry()
  for (const show of [showReceiveFigures, showDeliveryFigures, showJobFigures]) show(registry)
  const minuteAgo = new Date(Date.now() - 60_500)

  countJob('maintenance', 'done', 2_000)
  countDelivery('outbound', { kind: 'arrived' })
  noteArrival('outbound', minuteAgo)
  const none = { stored: 1, waiting: [], wrong: [], over: [], dead: [] }
  noteBatch([{ envelope: '', acceptedAt: minuteAgo }], none)

  const text = await registry.metrics()
  expect(text).toContain('pod_job_seconds_sum{queue="maintenance"} 2')
  expect(text).toMatch(/^pod_delivery_seconds_sum\{lane="outbound"\} 6\d\./m)
  expect(text).toMatch(/^pod_inbound_commit_seconds_sum\{queue="inbound"\} 6\d\./m)
})
