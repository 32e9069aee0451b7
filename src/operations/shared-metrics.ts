import { Gauge, type Registry } from 'prom-client'
import { storageFacts } from '../domain/operations/storage.js'
import { readPeerFacts, readSharedFacts, type SharedFacts } from '../persistence/operations/shared-facts.js'
import type { Pod } from '../pod/pod.js'

/** Milliseconds for which the figures of the database are kept: a scrape of each process must not count rows each time. */
const FACTS_KEPT_MS = 15_000
/** The pods of the metrics are chosen each minute. */
const PEERS_KEPT_MS = 60_000
/** Pods with a series of their own. */
const PEERS = 50

type Pieces = Pick<Pod, 'db' | 'log' | 'config'>

/** Registers figures that every process exports alike; the returned function renews them. Rules and dashboards use `max`. */
export function openSharedMetrics(registry: Registry, pod: Pieces): () => Promise<void> {
  const writeFacts = openFactGauges(registry)
  const writePeers = openPeerGauges(registry)
  const free = new Gauge({
    name: 'pod_storage_free_bytes',
    help: 'Free space of a folder of this process.',
    labelNames: ['store'],
    registers: [registry],
  })
  const facts = keptFor(FACTS_KEPT_MS, async () => {
    const begun = Date.now()
    const found = await readSharedFacts(pod.db)
    return { ...found, offset: (found.databaseClock - (begun + Date.now()) / 2) / 1_000 }
  })
  const peers = keptFor(PEERS_KEPT_MS, () => readPeerFacts(pod.db, PEERS))

  return async () => {
    const [found, foundPeers, folders] = await Promise.all([
      facts().catch((err: unknown) => logMissing(pod, err)),
      peers().catch((err: unknown) => logMissing(pod, err)),
      storageFacts(pod),
    ])
    writeFacts(found)
    writePeers(foundPeers ?? [])
    free.reset()
    for (const { folder, freeBytes } of folders)
      if (freeBytes !== null) free.set({ store: storeOf(pod, folder) }, freeBytes)
  }
}

function logMissing({ log }: Pick<Pod, 'log'>, err: unknown): undefined {
  log.debug({ err }, 'metrics without the shared figures')
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
  const processes = gauge('pod_processes', 'Processes with a heartbeat in the last 30 seconds.', 'kind', 'version')
  const paused = gauge('pod_queue_paused', 'Queues that an operator has paused.', 'queue')
  const dead = gauge('pod_dead_letters', 'Work that was given up, in rows of the database.', 'queue', 'fault')
  const quarantined = gauge('pod_quarantine_messages', 'Rejected messages that are kept.', 'fault')
  const cases = gauge('pod_cases_open', 'Cases that are open or taken.', 'kind')
  const oldestCase = gauge('pod_oldest_case_seconds', 'Age of the oldest open case.')
  const signUps = gauge('pod_sign_ups_pending', 'Sign-ups that wait for a moderator.')
  const actions = gauge('pod_moderation_actions_total', 'Actions of moderators.', 'kind')
  const hits = gauge('pod_filter_hits_total', 'Hits of filters in the last 30 days.', 'kind')
  const clock = gauge('pod_clock_offset_seconds', 'How far the clock of the database is ahead of this process.')
  const lag = gauge('pod_replication_lag_seconds', 'How far the slowest replica is behind.')
  const tables = gauge('pod_table_bytes', 'The largest tables with their indexes.', 'table')
  const all = [processes, paused, dead, quarantined, cases, oldestCase, signUps, actions, hits, clock, lag, tables]

  return (facts) => {
    for (const each of all) each.reset()
    for (const single of [oldestCase, signUps, clock, lag]) single.remove() // reset alone would say zero
    if (facts === undefined) return
    for (const { kind, version, count } of facts.processes) processes.set({ kind, version }, count)
    for (const queue of facts.pausedQueues) paused.set({ queue }, 1)
    for (const { queue, fault, count } of facts.deadLetters) dead.set({ queue, fault }, count)
    for (const { fault, count } of facts.quarantined) quarantined.set({ fault }, count)
    for (const { kind, count } of facts.casesOpen) cases.set({ kind }, count)
    oldestCase.set(facts.oldestCase ?? 0)
    signUps.set(facts.signUpsPending)
    for (const { kind, count } of facts.moderationActions) actions.set({ kind }, count)
    for (const { kind, count } of facts.filterHits) hits.set({ kind }, count)
    clock.set(facts.offset)
    if (facts.replicationLag !== null) lag.set(facts.replicationLag)
    for (const { table, bytes } of facts.tables) tables.set({ table }, bytes)
  }
}

function openPeerGauges(registry: Registry): (peers: Awaited<ReturnType<typeof readPeerFacts>>) => void {
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames: ['peer'], registers: [registry] })
  const waiting = gauge('pod_peer_waiting', 'Deliveries that wait for a pod; other: all pods without a series.')
  const oldest = gauge('pod_peer_oldest_seconds', 'Age of the oldest delivery that waits for a pod.')
  const failures = gauge('pod_peer_failures', 'Failed deliveries and checks of a pod since its last success.')

  return (peers) => {
    for (const each of [waiting, oldest, failures]) each.reset()
    for (const { peer: name, ...facts } of peers) {
      const peer = name ?? 'other'
      waiting.set({ peer }, facts.waiting)
      oldest.set({ peer }, facts.oldest ?? 0)
      failures.set({ peer }, facts.failures)
    }
  }
}
