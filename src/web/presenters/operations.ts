import type { BackgroundOperation } from '../../domain/operations/long-operations.js'
import type { QueueOverview } from '../../domain/operations/queues.js'
import { isNearlyFull, type StorageFacts } from '../../domain/operations/storage.js'
import type { JobSummary } from '../../jobs/bullmq/job-summaries.js'
import type { DeadLetter } from '../../jobs/dead-letters/dead-letter.js'
import type { QuarantinedMessage } from '../../persistence/inbound/quarantine.js'
import type { StoredCheck } from '../../persistence/operations/checks.js'
import type { DatabaseFacts } from '../../persistence/operations/database-facts.js'
import type { PodProcess } from '../../persistence/operations/processes.js'
import type { TraceStep } from '../../persistence/operations/traces.js'

export function presentQueue({ requested, perMinute, ...queue }: QueueOverview) {
  return {
    name: queue.name,
    state: queue.state,
    stopped:
      requested === undefined
        ? null
        : {
            by: requested.actor,
            reason: requested.reason,
            since: requested.changedAt.toISOString(),
            until: requested.until?.toISOString() ?? null,
          },
    waiting: queue.waiting,
    active: queue.active,
    delayed: queue.delayed,
    failed: queue.failed,
    oldest_seconds: queue.oldestSeconds,
    per_minute: { last_1: perMinute.minute, last_15: perMinute.quarter, last_60: perMinute.hour },
    wait_ms: queue.wait,
    run_ms: queue.run,
    workers: queue.workers,
  }
}

export function presentQueueJob({ id, name, addedAt, finishedAt, attempts, fault }: JobSummary) {
  return {
    id,
    name,
    added_at: new Date(addedAt).toISOString(),
    finished_at: finishedAt === null ? null : new Date(finishedAt).toISOString(),
    attempts,
    fault,
  }
}

export function presentTraceStep({ at, ...step }: TraceStep) {
  return { at: at.toISOString(), ...step }
}

export function presentQuarantined(message: QuarantinedMessage) {
  return {
    id: message.id,
    channel: message.recipientGuid === null ? ('public' as const) : ('private' as const),
    recipient_guid: message.recipientGuid,
    source: message.source,
    author: message.author,
    host: message.host,
    entity: message.entity,
    guid: message.guid,
    fault: message.fault,
    detail: message.detail,
    bytes: message.bytes,
    replayable: message.isWhole,
    digest: message.digest,
    trace: message.trace,
    times: message.times,
    received_at: message.receivedAt.toISOString(),
    last_at: message.lastAt.toISOString(),
    state: message.state,
    result: message.result,
  }
}

export function presentDeadLetter({ createdAt, failedAt, ...deadLetter }: DeadLetter) {
  return { ...deadLetter, first_at: createdAt.toISOString(), last_at: failedAt.toISOString() }
}

export function presentCheck({ name, state, message, certificateEndsAt, checkedAt }: StoredCheck) {
  return {
    check: name,
    state,
    message,
    certificate_ends_at: certificateEndsAt?.toISOString() ?? null,
    checked_at: checkedAt.toISOString(),
  }
}

export function presentProcess({ id, kind, host, pid, version, startedAt, seenAt, facts }: PodProcess) {
  return {
    id,
    kind,
    host,
    pid,
    version,
    started_at: startedAt.toISOString(),
    seen_at: seenAt.toISOString(),
    rss_bytes: facts.rssBytes,
    heap_bytes: facts.heapBytes,
    busy_percent: facts.busyPercent,
    queues: [...facts.queues],
    jobs: [...facts.jobs],
  }
}

export function presentDatabase(facts: DatabaseFacts) {
  return {
    version: facts.version,
    bytes: facts.bytes,
    connections: facts.connections,
    max_connections: facts.maxConnections,
    longest_transaction_seconds: facts.longestTransaction,
    waiting_locks: facts.waitingLocks,
    transaction_age: facts.transactionAge,
    replicas: facts.replicas,
    replica_lag_seconds: facts.replicaLag,
    slow_statements: facts.slowStatements.map(({ text, count, maxMs }) => ({ text, count, max_ms: maxMs })),
    slow_statements_from: facts.slowStatementSource,
    tables: facts.tables.map(({ name, bytes, rows, deadRows, vacuumedAt }) => ({
      name,
      bytes,
      rows,
      dead_rows: deadRows,
      vacuumed_at: vacuumedAt?.toISOString() ?? null,
    })),
  }
}

export function presentStorage(folders: readonly StorageFacts[]) {
  return {
    folders: folders.map((facts) => ({
      folder: facts.folder,
      free_bytes: facts.freeBytes,
      total_bytes: facts.totalBytes,
      nearly_full: isNearlyFull(facts),
    })),
  }
}

export function presentOperation({ id, kind, state, done, total, skipped, errors }: BackgroundOperation) {
  return { id, kind, state, done, total, skipped, errors: [...errors] }
}
