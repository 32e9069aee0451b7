import { Counter, Gauge, type Registry } from 'prom-client'
import { storageFacts } from '../domain/operations/storage.js'
import { readPeerFacts, readSharedFacts, type SharedFacts } from '../persistence/operations/shared-facts.js'
import type { Pod } from '../pod/pod.js'

/** Milliseconds for which the figures of the database are kept: a scrape of each process must not count rows each time. */
const FACTS_KEPT_MS = 15_000
/** The pods of the metrics are chosen each minute. */
const PEERS_KEPT_MS = 60_000

type MetricsPod = Pick<Pod, 'db' | 'log' | 'config'>

/** Registers figures that every process exports alike; the returned function renews them. Rules and dashboards use `max`. */
export function openSharedMetrics(registry: Registry, pod: MetricsPod): () => Promise<void> {
  const writeFacts = openFactGauges(registry)
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
  const facts = keptFor(FACTS_KEPT_MS, async () => {
    const begun = Date.now()
    const figures = await readSharedFacts(pod.db)
    return { ...figures, offset: (figures.databaseClock - (begun + Date.now()) / 2) / 1_000 }
  })
  const peers = keptFor(PEERS_KEPT_MS, () => readPeerFacts(pod.db, pod.config.metricsPeers))

  return async () => {
    const [found, foundPeers, folders] = await Promise.all([
      facts().catch((err: unknown) => logMissing(pod, err)),
      peers().catch((err: unknown) => logMissing(pod, err)),
      storageFacts(pod),
    ])
    writeFacts(found)
    writePeers(foundPeers ?? [])
    for (const each of [free, size]) each.reset()
    for (const { folder, freeBytes, totalBytes } of folders) {
      const store = storeOf(pod, folder)
      if (freeBytes !== null) free.set({ store }, freeBytes)
      if (totalBytes !== null) size.set({ store }, totalBytes)
    }
  }
}

function logMissing({ log }: Pick<Pod, 'log'>, err: unknown): undefined {
  log.debug({ err }, 'shared metrics unavailable')
}

function storeOf({ config }: Pick<Pod, 'config'>, folder: string): string {
  return folder === config.uploadsDir ? 'uploads' : 'data'
}

/** The last result of an operation, which runs again once the result is older. */
function keptFor<Result>(milliseconds: number, operation: () => Promise<Result>): () => Promise<Result> {
  let kept: { readonly at: number; readonly result: Promise<Result> } | undefined
  return () => {
    const now = performance.now()
    if (kept !== undefined && now - kept.at < milliseconds) return kept.result
    const result = operation()
    const mine = { at: now, result }
    kept = mine
    result.catch(() => {
      if (kept === mine) kept = undefined
    })
    return result
  }
}

type Facts = SharedFacts & { readonly offset: number }

function openFactGauges(registry: Registry): (facts: Facts | undefined) => void {
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  const counter = (name: string, help: string, label = 'kind') =>
    new Counter({ name, help, labelNames: [label], registers: [registry] })
  const processes = gauge('pod_processes', 'Processes with a heartbeat in the last 30 seconds.', 'kind', 'version')
  const paused = gauge('pod_queue_paused', 'Queues that an operator has paused.', 'queue')
  const pauseLeft = gauge('pod_queue_pause_left_seconds', 'Until a pause ends; not there: it has no end.', 'queue')
  const dead = gauge('pod_dead_letters', 'Work that was given up, in rows of the database.', 'queue', 'fault')
  const quarantined = gauge('pod_quarantine_messages', 'Rejected messages that are kept.', 'fault')
  const cases = gauge('pod_cases_open', 'Cases that are open or taken.', 'kind')
  const oldestCase = gauge('pod_oldest_case_seconds', 'Age of the oldest open case.')
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
  const optional = [oldestCase, signUps, oldestSignUp, clock, certificate, connections, maxConnections, lag]
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

  return (facts) => {
    for (const each of gauges) each.reset()
    for (const single of optional) single.remove() // reset alone would say zero
    if (facts === undefined) return
    for (const { kind, version, count } of facts.processes) processes.set({ kind, version }, count)
    for (const { queue, left } of facts.pausedQueues) {
      paused.set({ queue }, 1)
      if (left !== null) pauseLeft.set({ queue }, left)
    }
    for (const { queue, fault, count } of facts.deadLetters) dead.set({ queue, fault }, count)
    for (const { fault, count } of facts.quarantined) quarantined.set({ fault }, count)
    for (const { kind, count } of facts.casesOpen) cases.set({ kind }, count)
    oldestCase.set(facts.oldestCase ?? 0)
    signUps.set(facts.signUpsPending)
    oldestSignUp.set(facts.oldestSignUp ?? 0)
    connections.set(facts.connections)
    maxConnections.set(facts.maxConnections)
    for (const { kind, count } of facts.moderationActions) actions.inc({ kind }, count)
    for (const { kind, count } of facts.filterHits) hits.inc({ kind }, count)
    for (const { category, count, candidates: found } of facts.pruned) {
      pruned.inc({ category }, count)
      if (found !== null) candidates.set({ category }, found)
    }
    clock.set(facts.offset)
    if (facts.certificateEnds !== null) certificate.set(facts.certificateEnds)
    if (facts.replicationLag !== null) lag.set(facts.replicationLag)
    for (const { table, bytes } of facts.tables) tables.set({ table }, bytes)
  }
}

function openPeerGauges(registry: Registry): (peers: Awaited<ReturnType<typeof readPeerFacts>>) => void {
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames: ['peer'], registers: [registry] })
  const waiting = gauge('pod_peer_waiting', 'Deliveries that wait for a pod; other: all pods without a series.')
  const oldest = gauge('pod_peer_oldest_seconds', 'Age of the oldest delivery that waits for a pod.')
  const failures = gauge('pod_peer_failures', 'Failed deliveries and checks of a pod since its last success.')
  const received = gauge('pod_peer_received_hour', 'Messages of a pod in the last hour, to ten minutes.')
  const delivered = gauge('pod_peer_delivered_hour', 'Deliveries to a pod in the last hour, to ten minutes.')

  return (peers) => {
    for (const each of [waiting, oldest, failures, received, delivered]) each.reset()
    for (const { peer: name, ...facts } of peers) {
      const peer = name ?? 'other'
      waiting.set({ peer }, facts.waiting)
      oldest.set({ peer }, facts.oldest ?? 0)
      failures.set({ peer }, facts.failures)
      received.set({ peer }, facts.received)
      delivered.set({ peer }, facts.delivered)
    }
  }
}
