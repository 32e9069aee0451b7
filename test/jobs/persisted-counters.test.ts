import { Counter, Registry } from 'prom-client'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { registerReceiveMetrics } from '../../src/federation/inbound/receive-metrics.js'
import { registerDeliveryMetrics } from '../../src/federation/outbound/delivery-metrics.js'
import { openActivityCounts } from '../../src/jobs/operations/activity-rates.js'
import { PERSISTED_COUNTERS, persistCounters } from '../../src/jobs/operations/persisted-counters.js'
import { countReceived } from '../../src/jobs/operations/pod-activity.js'
import { readRecentActivity } from '../../src/jobs/operations/recent-activity.js'
import { openMetrics } from '../../src/operations/metrics.js'
import { buildApp } from '../../src/web/server/app.js'
import { prune } from '../../workers/handlers/maintenance.js'
import { registerJobMetrics } from '../../workers/job-metrics.js'
import { NO_EVENT_LOOP_LIMIT } from '../support/pods/build-pod.js'
import { type FederationPod, openFederationPod } from '../support/pods/federation-pod.js'

describe('persisted counters of the processes', () => {
  let pod: FederationPod
  beforeAll(async () => {
    pod = await openFederationPod()
  })
  afterAll(() => pod.close())
  beforeEach(() => pod.db('figures').delete())

  /** A process that counts received messages, and the stored counters. */
  function openProcess() {
    const registry = new Registry()
    const labelNames = ['queue', 'end', 'fault']
    const inboundMessages = new Counter({
      name: PERSISTED_COUNTERS.inboundMessages,
      help: 'Messages.',
      labelNames,
      registers: [registry],
    })
    const jobs = new Counter({
      name: PERSISTED_COUNTERS.jobs,
      help: 'Jobs.',
      labelNames: ['queue', 'end'],
      registers: [registry],
    })
    return { inboundMessages, jobs, figures: persistCounters(pod, registry) }
  }

  it('are added up over processes, and stored once', async () => {
    const [one, other] = [openProcess(), openProcess()]
    one.inboundMessages.inc({ queue: 'inbound', end: 'stored' }, 7)
    one.inboundMessages.inc({ queue: 'inbound', end: 'rejected', fault: 'InvalidSender' })
    other.inboundMessages.inc({ queue: 'inbound-private', end: 'rejected', fault: 'InvalidSender' }, 2)
    await Promise.all([one.figures.keep(), other.figures.keep(), one.figures.keep()])
    one.inboundMessages.inc({ queue: 'inbound', end: 'stored' }, 3)
    one.inboundMessages.inc({ queue: 'inbound', end: 'waiting', fault: 'NotFetchable' }, 4)

    await Promise.all([one.figures.close(), other.figures.close()])

    expect((await readRecentActivity(pod)).inboundResults).toEqual({
      stored: 10,
      ignored: 0,
      rejected: { InvalidSender: 3 },
      waiting: { NotFetchable: 4 },
      dead: {},
    })
  })

  it('are kept in memory until the database accepts them', async () => {
    const { inboundMessages, figures } = openProcess()
    inboundMessages.inc({ queue: 'inbound', end: 'stored' }, 5)

    await pod.db.raw('alter table figures rename to figures_away')
    await figures.keep()
    await pod.db.raw('alter table figures_away rename to figures')
    expect(await pod.rows('figures')).toEqual([0])

    inboundMessages.inc({ queue: 'inbound', end: 'stored' })
    await figures.close()
    expect((await readRecentActivity(pod)).inboundResults.stored).toBe(6)
  })

  it('include those by pod, which are written later after an error', async () => {
    const [{ id }] = await pod.db('pods').insert({ host: 'r.example', port: 3000 }).returning('id')
    const { figures } = openProcess()
    countReceived(pod.db, 'r.example:3000', 'received')
    countReceived(pod.db, 'unknown.example', 'received')

    await pod.db.raw('alter table pod_days rename to pod_days_away')
    await figures.keep()
    await pod.db.raw('alter table pod_days_away rename to pod_days')
    countReceived(pod.db, 'r.example:3000', 'refused')
    await figures.close()

    expect(await pod.db('pod_days').select('pod_id', 'received', 'refused')).toEqual([
      { podId: id, received: 1, refused: 1 },
    ])
    await pod.db('pod_days').update({ day: pod.db.raw('current_date - 15') })
    await pod.db('pod_slots').update({ slot: pod.db.raw(`now() - interval '26 hours'`) })
    await prune(pod)
    expect(await pod.rows('pod_days', 'pod_slots')).toEqual([0, 0])
  })

  it('give rates over full minutes: messages of inbound queues, jobs of the other queues', async () => {
    const { inboundMessages, jobs, figures } = openProcess()
    inboundMessages.inc({ queue: 'inbound', end: 'stored' }, 90)
    inboundMessages.inc({ queue: 'inbound', end: 'ignored' }, 10)
    jobs.inc({ queue: 'inbound', end: 'done' }, 3)
    jobs.inc({ queue: 'fetch', end: 'done' }, 15)
    jobs.inc({ queue: 'fetch', end: 'failed' }, 5)
    await figures.close()
    expect((await readRecentActivity(pod)).perMinute).toMatchObject({ inbound: 0, fetch: 0 }) // this minute is incomplete

    await pod.db.raw(`update figures set minute = minute - interval '3 minutes'`)
    expect((await readRecentActivity(pod)).perMinute).toMatchObject({ inbound: 20, fetch: 4, outbound: 0 })

    await pod.db.raw(`update figures set minute = minute - interval '3 minutes'`)
    expect((await readRecentActivity(pod)).perMinute).toMatchObject({ inbound: 0, fetch: 0 })
    expect((await readRecentActivity(pod)).inboundResults).toMatchObject({ stored: 90, ignored: 10 })
  })

  it('give counts between two looks, also when the counters of an hour ago leave the sums of the last hour', async () => {
    const { inboundMessages, figures } = openProcess()
    const age = (minutes: number) =>
      pod.db.raw(`update figures set minute = minute - make_interval(mins => ?)`, [minutes])
    inboundMessages.inc({ queue: 'inbound', end: 'stored' }, 100)
    await figures.keep()
    await age(60)
    const countActivity = openActivityCounts(pod)
    expect(await countActivity()).toBeUndefined()

    await age(1)
    inboundMessages.inc({ queue: 'inbound', end: 'stored' }, 5)
    inboundMessages.inc({ queue: 'inbound', end: 'rejected', fault: 'InvalidSender' }, 2)
    await figures.keep()
    expect(await countActivity()).toEqual({ received: 0, stored: 5, delivered: 0 })
    inboundMessages.inc({ queue: 'inbound', end: 'stored' }, 3)
    await figures.close()
    expect([await countActivity(), await countActivity()]).toMatchObject([{ stored: 3 }, { stored: 0 }])
  })

  it('are not reported after an hour, and deleted after two days', async () => {
    const { inboundMessages, figures } = openProcess()
    inboundMessages.inc({ queue: 'inbound', end: 'stored' })
    await figures.close()
    await pod.db.raw(`update figures set minute = minute - interval '47 hours'`)
    await prune(pod)
    expect([(await readRecentActivity(pod)).inboundResults.stored, await pod.rows('figures')]).toEqual([0, [1]])

    await pod.db.raw(`update figures set minute = minute - interval '2 hours'`)
    await prune(pod)
    expect(await pod.rows('figures')).toEqual([0])
  })

  it('are reported under the names of the counters', async () => {
    const metrics = openMetrics(pod)
    const app = await buildApp(pod, { metrics, limits: NO_EVENT_LOOP_LIMIT })
    const { registry } = metrics
    registerReceiveMetrics(registry)
    registerDeliveryMetrics(registry)
    registerJobMetrics(registry)

    expect(Object.values(PERSISTED_COUNTERS).filter((name) => registry.getSingleMetric(name) === undefined)).toEqual([])
    await app.close()
  })
})
