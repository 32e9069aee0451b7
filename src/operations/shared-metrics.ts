import { Counter, Gauge, type Registry } from 'prom-client'
import { cacheResult, refreshResult } from '../concurrency/cache-result.js'
import { readFolderSpaces } from '../domain/operations/storage.js'
import { countFailedJobs } from '../jobs/dead-letters/count-dead-letters.js'
import { QUEUES } from '../jobs/queues/queue-names.js'
import {
  readMetricsOfOtherPods,
  readSharedMetrics,
  type SharedMetrics,
} from '../persistence/operations/shared-metrics.js'
import type { MonitoringServices, Services } from '../services/services.js'

/** Milliseconds for which the numbers of the database are cached: a scrape of each process must not count rows each time. */
const SHARED_METRICS_CACHE_MS = 15_000
/** The pods of the metrics are chosen each minute. */
const PEER_METRICS_CACHE_MS = 60_000
/** Failed jobs of a queue that are read to be counted. */
const READ_FAILED_JOBS = 10_000
/** A count of failed jobs may read many of them, so a process counts them before its first scrape, and later beside the scrapes. */
const FAILED_JOBS_CACHE_MS = 60_000
/** Faults of dead letters with series of their own. */
const FAULTS = 30

/** Registers metrics that every process exports alike; the returned function renews them. Rules and dashboards use `max`. */
export function openSharedMetrics(
  registry: Registry,
  services: MonitoringServices & Pick<Services, 'jobs'>,
): () => Promise<void> {
  const writeGauges = openSharedGauges(registry)
  const writePeers = openPeerGauges(registry)
  const free = new Gauge({
    name: 'pod_storage_free_bytes',
    help: 'Free space of a folder of this process.',
    labelNames: ['store'],
    registers: [registry],
  })
  const size = new Gauge({
    name: 'pod_storage_size_bytes',
    help: 'Size of the file system of a folder of this process.',
    labelNames: ['store'],
    registers: [registry],
  })
  const failedJobs = refreshResult(() => countFailedJobs(services, READ_FAILED_JOBS), FAILED_JOBS_CACHE_MS)
  failedJobs().catch(() => undefined) // a scrape gets the error
  const values = cacheResult(async (): Promise<GaugeValues> => {
    const beganAt = Date.now()
    const { deadLetters: ofRows, ...rest } = await readSharedMetrics(services.db)
    const offset = (rest.databaseClock - (beganAt + Date.now()) / 2) / 1_000
    const ofJobs = await failedJobs().catch((err: unknown) => logMissing(services, err))
    const deadLetters = ofJobs && {
      counts: groupRareFaults([...ofRows, ...ofJobs.counts]),
      isCut: ofJobs.isCut,
    }
    return { ...rest, deadLetters, offset }
  }, SHARED_METRICS_CACHE_MS)
  const peers = cacheResult(
    () => readMetricsOfOtherPods(services.db, services.config.metricsPeers),
    PEER_METRICS_CACHE_MS,
  )

  return async () => {
    const [found, foundPeers, folders] = await Promise.all([
      values().catch((err: unknown) => logMissing(services, err)),
      peers().catch((err: unknown) => logMissing(services, err)),
      readFolderSpaces(services),
    ])
    writeGauges(found)
    writePeers(foundPeers)
    for (const each of [free, size]) each.reset()
    for (const { folder, freeBytes, totalBytes } of folders) {
      const store = storeOf(services, folder)
      if (freeBytes !== null) free.set({ store }, freeBytes)
      if (totalBytes !== null) size.set({ store }, totalBytes)
    }
  }
}

function logMissing({ log }: Pick<Services, 'log'>, err: unknown): undefined {
  log.debug({ err }, 'shared metrics unavailable')
}

function storeOf({ config }: Pick<Services, 'config'>, folder: string): string {
  return folder === config.uploadsDir ? 'uploads' : 'data'
}

type DeadLetterCounts = SharedMetrics['deadLetters']

/** Adds the dead letters of rows and of jobs. All but the most frequent faults become `other`. */
function groupRareFaults(counts: DeadLetterCounts): DeadLetterCounts {
  const totals = new Map<string, number>()
  for (const { fault, count } of counts) totals.set(fault, (totals.get(fault) ?? 0) + count)
  const frequentFaults = new Set(
    [...totals]
      .sort(([, one], [, other]) => other - one)
      .slice(0, FAULTS)
      .map(([fault]) => fault),
  )
  const sums = new Map<string, DeadLetterCounts[number]>()
  for (const { queue, fault: own, count } of counts) {
    const fault = frequentFaults.has(own) ? own : 'other'
    const key = JSON.stringify([queue, fault])
    sums.set(key, { queue, fault, count: (sums.get(key)?.count ?? 0) + count })
  }
  return [...sums.values()]
}

interface GaugeValues extends Omit<SharedMetrics, 'deadLetters'> {
  /** Undefined: the failed jobs are unknown. Without them the numbers would fall, and rise by them later. */
  readonly deadLetters: { readonly counts: DeadLetterCounts; readonly isCut: boolean } | undefined
  readonly offset: number
}

function openSharedGauges(registry: Registry): (values: GaugeValues | undefined) => void {
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  const counter = (name: string, help: string, label = 'kind') =>
    new Counter({ name, help, labelNames: [label], registers: [registry] })
  const processes = gauge('pod_processes', 'Processes with a heartbeat in the last 30 seconds.', 'kind', 'version')
  const paused = gauge('pod_queue_paused', 'Queues that an operator has paused.', 'queue')
  const pauseLeft = gauge('pod_queue_pause_left_seconds', 'Until a pause ends; not there: it has no end.', 'queue')
  const dead = gauge(
    'pod_dead_letters',
    'Work that was given up: rows, deliveries, and failed jobs without a row.',
    'queue',
    'fault',
  )
  const isCut = gauge(
    'pod_dead_letters_incomplete',
    '1: pod_dead_letters is without the older failed jobs of a queue. Not there: the dead letters are unknown.',
  )
  const quarantined = gauge('pod_quarantine_messages', 'Rejected messages that are kept.', 'fault')
  const cases = gauge('pod_cases_open', 'Cases that are open or taken.', 'kind')
  const oldestCase = gauge(
    'pod_oldest_case_seconds',
    'How long the oldest case is open or taken, since its first report or since it was opened again.',
  )
  const signUps = gauge('pod_sign_ups_pending', 'Sign-ups that wait for a moderator.')
  const oldestSignUp = gauge('pod_oldest_sign_up_seconds', 'How long the oldest sign-up waits for a moderator.')
  const actions = counter('pod_moderation_actions_total', 'Actions of moderators.')
  const hits = counter('pod_filter_hits_total', 'Hits of filters.')
  const pruned = counter('pod_pruned_rows_total', 'Old rows that were removed.', 'category')
  const candidates = gauge(
    'pod_prune_candidates',
    'Rows older than the limit that the last removal has found: removed ones, and those that stay.',
    'category',
  )
  const clock = gauge('pod_clock_offset_seconds', 'How far the clock of the database is ahead of this process.')
  const certificate = gauge('pod_certificate_expiry_seconds', 'Until the certificate of POD_URL ends.')
  const connections = gauge('pod_db_server_connections', 'Connections of all programs to the server of the database.')
  const maxConnections = gauge('pod_db_server_connections_limit', 'Connections that the server of the database allows.')
  const lag = gauge('pod_replication_lag_seconds', 'How far the slowest replica is behind.')
  const tables = gauge('pod_table_bytes', 'The largest tables with their indexes.', 'table')
  const optional = [oldestCase, signUps, oldestSignUp, clock, certificate, connections, maxConnections, lag, isCut]
  const gauges = [
    processes,
    paused,
    pauseLeft,
    dead,
    quarantined,
    cases,
    actions,
    hits,
    pruned,
    candidates,
    tables,
    ...optional,
  ]

  return (values) => {
    for (const each of gauges) each.reset()
    for (const single of optional) single.remove() // reset alone would say zero
    if (values === undefined) return
    for (const { kind, version, count } of values.processes) processes.set({ kind, version }, count)
    for (const queue of QUEUES) paused.set({ queue }, 0)
    for (const { queue, left } of values.pausedQueues) {
      paused.set({ queue }, 1)
      if (left !== null) pauseLeft.set({ queue }, left)
    }
    for (const { queue, fault, count } of values.deadLetters?.counts ?? []) dead.set({ queue, fault }, count)
    if (values.deadLetters !== undefined) isCut.set(values.deadLetters.isCut ? 1 : 0)
    for (const { fault, count } of values.quarantined) quarantined.set({ fault }, count)
    for (const { kind, count } of values.casesOpen) cases.set({ kind }, count)
    oldestCase.set(values.oldestCase ?? 0)
    signUps.set(values.signUpsPending)
    oldestSignUp.set(values.oldestSignUp ?? 0)
    connections.set(values.connections)
    maxConnections.set(values.maxConnections)
    for (const { kind, count } of values.moderationActions) actions.inc({ kind }, count)
    for (const { kind, count } of values.filterHits) hits.inc({ kind }, count)
    for (const { category, count, candidates: found } of values.pruned) {
      pruned.inc({ category }, count)
      if (found !== null) candidates.set({ category }, found)
    }
    clock.set(values.offset)
    if (values.certificateEnds !== null) certificate.set(values.certificateEnds)
    if (values.replicationLag !== null) lag.set(values.replicationLag)
    for (const { table, bytes } of values.tables) tables.set({ table }, bytes)
  }
}

type PeerValues = Awaited<ReturnType<typeof readMetricsOfOtherPods>>

/** The returned function removes all values if there are none. */
function openPeerGauges(registry: Registry): (peers: PeerValues | undefined) => void {
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames: ['peer'], registers: [registry] })
  const waiting = gauge('pod_peer_waiting', 'Deliveries that wait for a pod; other: all pods without a series.')
  const oldest = gauge('pod_peer_oldest_seconds', 'Age of the oldest delivery that waits for a pod.')
  const failures = gauge('pod_peer_failures', 'Failed deliveries and checks of a pod since its last success.')
  const received = gauge('pod_peer_received_hour', 'Messages of a pod in the last hour, to ten minutes.')
  const delivered = gauge('pod_peer_delivered_hour', 'Deliveries to a pod in the last hour, to ten minutes.')
  const oldestAvailable = new Gauge({
    name: 'pod_oldest_available_delivery_seconds',
    help: 'Age of the oldest due delivery that was not attempted yet, for a pod without failures or refusals that is neither paused nor blocked.',
    registers: [registry],
  })

  return (peers) => {
    for (const each of [waiting, oldest, failures, received, delivered]) each.reset()
    oldestAvailable.remove() // reset alone would say zero
    if (peers === undefined) return
    for (const { peer: name, ...values } of peers) {
      const peer = name ?? 'other'
      waiting.set({ peer }, values.waiting)
      oldest.set({ peer }, values.oldest ?? 0)
      failures.set({ peer }, values.failures)
      received.set({ peer }, values.received)
      delivered.set({ peer }, values.delivered)
    }
    oldestAvailable.set(Math.max(0, ...peers.map((values) => values.oldestAvailable ?? 0)))
  }
}
