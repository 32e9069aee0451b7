import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { readCommit, readSoftware } from '../config/software.js'
import { readWorkStatus } from '../jobs/operations/work-status.js'
import type { Services } from '../services/services.js'
import { registerClosureMetrics } from '../web/limits/closure-counts.js'
import { registerRejectionMetrics } from '../web/limits/rejection-metrics.js'
import { LIBRARY_SAMPLER_OFF, registerLoopGauges } from './event-loop-metrics.js'
import { registerInboundEndpointMetrics } from './inbound-metrics.js'
import { registerLiveMetrics } from './live-metrics.js'
import { registerPoolMetrics } from './pool-metrics.js'
import { registerReplicaMetrics } from './replica-metrics.js'
import { openSharedMetrics } from './shared-metrics.js'

/** The metrics of a process. */
export interface Metrics {
  readonly registry: Registry
  /** Counts requests by route pattern: paths would make one series per guid. */
  watch(app: FastifyInstance): void
  /** All metrics as text, with current numbers of queue and database. */
  text(): Promise<string>
}

/** Bounds of histograms, from a cached response to the longest wait of a client. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function openMetrics(services: Pick<Services, 'config' | 'db' | 'jobs' | 'log'>): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, ...LIBRARY_SAMPLER_OFF })
  const requests = new Counter({
    name: 'pod_http_requests_total',
    help: 'Requests answered.',
    labelNames: ['method', 'route', 'status'],
    registers,
  })
  const durations = new Histogram({
    name: 'pod_http_request_seconds',
    help: 'From the first byte of a request to the last of its answer.',
    labelNames: ['method', 'route'],
    buckets: SECONDS,
    registers,
  })
  registerBuildInfo(registry, services.jobs.store)
  registerPoolMetrics(registry, services.db)
  const writeGauges = registerWorkGauges(registry)
  const writeShared = openSharedMetrics(registry, services)
  const writeLag = registerLoopGauges(registry)

  return {
    registry,
    watch(app) {
      registerRejectionMetrics(registry)
      registerInboundEndpointMetrics(registry, app.inboundEndpoint)
      registerClosureMetrics(registry, app.closedConnections)
      registerLiveMetrics(registry, app.live)
      if (app.services.replica) registerReplicaMetrics(registry, app.services.replica)
      app.addHook('onResponse', ({ method, routeOptions }, reply, done) => {
        const route = routeOptions.url ?? 'unknown'
        requests.inc({ method, route, status: reply.statusCode })
        if (!routeOptions.config.lasting) durations.observe({ method, route }, reply.elapsedTime / 1_000)
        done()
      })
    },
    async text() {
      const sharedMetricsWritten = writeShared()
      try {
        writeGauges(await readWorkStatus(services))
      } catch (error) {
        services.log.debug({ err: error }, 'database metrics unavailable')
        writeGauges(undefined)
      }
      await sharedMetricsWritten
      writeLag()
      return registry.metrics()
    },
  }
}

/** Always 1; the labels carry the versions. */
function registerBuildInfo(registry: Registry, queueStore: string): void {
  const { name, version } = readSoftware()
  const build = new Gauge({
    name: 'pod_build_info',
    help: 'What runs in this process.',
    labelNames: ['software', 'version', 'commit', 'node', 'queue_store'],
    registers: [registry],
  })
  const commit = readCommit() ?? 'unknown'
  build.set({ software: name, version, commit, node: process.versions.node, queue_store: queueStore }, 1)
}

type GaugeValues = Awaited<ReturnType<typeof readWorkStatus>>

/** Numbers of an unreachable queue or database are removed: old ones would look current. */
function registerWorkGauges(registry: Registry): (values: GaugeValues | undefined) => void {
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] })

  const reachable = gauge('pod_reachable', 'Whether what the pod needs answers.', 'part')
  const jobs = gauge('pod_jobs', 'Jobs by queue and state.', 'queue', 'state')
  const oldestJob = gauge('pod_oldest_waiting_job_seconds', 'Age of the job that is next in line.', 'queue')
  const workers = gauge('pod_queue_workers', 'Workers that serve a queue, in all processes.', 'queue')
  const outbox = gauge('pod_outbox_rows', 'Work that follows from a change and is not done.', 'state')
  const oldestRow = gauge('pod_oldest_outbox_row_seconds', 'Age of the oldest work that is not done.')
  const waiting = gauge('pod_waiting_messages', 'Messages that wait for something unknown.', 'kind')
  const deliveries = gauge('pod_deliveries', 'Deliveries to other pods.', 'state')
  const asleep = gauge('pod_pods_asleep', 'Other pods for which no more deliveries are stored.')
  const lastSweep = gauge('pod_last_sweep_seconds', 'Since the sweeper last ran, in any process.')
  const gauges = [reachable, jobs, oldestJob, workers, outbox, oldestRow, waiting, deliveries, asleep, lastSweep]

  return (values) => {
    for (const each of gauges) each.reset()
    for (const single of [oldestRow, asleep, lastSweep]) single.remove() // reset alone would say zero
    reachable.set({ part: 'database' }, values ? 1 : 0)
    if (!values) return
    reachable.set({ part: 'queue' }, values.queues ? 1 : 0)
    for (const [queue, { oldestWaiting, workers: serving, ...states }] of Object.entries(values.queues ?? {})) {
      for (const [state, count] of Object.entries(states)) jobs.set({ queue, state }, count)
      oldestJob.set({ queue }, oldestWaiting ?? 0)
      workers.set({ queue }, serving)
    }
    outbox.set({ state: 'waiting' }, values.outbox.waiting)
    outbox.set({ state: 'dead' }, values.outbox.dead)
    oldestRow.set(values.outbox.oldest ?? 0)
    for (const [kind, count] of Object.entries(values.waitingFor)) waiting.set({ kind }, count)
    for (const [state, count] of Object.entries(values.deliveries)) deliveries.set({ state }, count)
    asleep.set(values.podsAsleep)
    if (values.lastSweep !== null) lastSweep.set(values.lastSweep)
  }
}
