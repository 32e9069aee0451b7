import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { countBatch, registerReceiveMetrics } from '../../src/federation/inbound/receive-metrics.js'
import {
  recordDelivery,
  recordDeliveryLatency,
  registerDeliveryMetrics,
} from '../../src/federation/outbound/delivery-metrics.js'
import { countJob, recordJobWait, registerJobMetrics } from '../../workers/job-metrics.js'

it('a worker reports the duration of jobs and the age of messages at commit and of deliveries at arrival', async () => {
  const registry = new Registry()
  for (const show of [registerReceiveMetrics, registerDeliveryMetrics, registerJobMetrics]) show(registry)
  registry.resetMetrics() // other files of the process have counted, too
  const minuteAgo = new Date(Date.now() - 60_500)

  countJob('maintenance', 'done', 2_000)
  recordJobWait('maintenance', 3_000)
  recordDelivery('outbound', { kind: 'delivered' }, 250)
  recordDeliveryLatency({ isPublic: false, writtenAt: minuteAgo })
  const none = { stored: 1, waiting: [], rejected: [], ignored: [], givenUp: [] }
  countBatch([{ envelope: '', acceptedAt: minuteAgo }], none)

  const text = await registry.metrics()
  expect(text).toContain('pod_job_seconds_sum{queue="maintenance",end="done"} 2')
  expect(text).toContain('pod_job_wait_seconds_sum{queue="maintenance"} 3')
  expect(text).toMatch(/^pod_commit_to_delivered_seconds_sum\{channel="private"\} 6\d\./m)
  expect(text).toContain('pod_delivery_seconds_sum{lane="outbound",outcome="arrived"} 0.25')
  expect(text).toMatch(/^pod_accept_to_commit_seconds_sum\{channel="public"\} 6\d\./m)
})
