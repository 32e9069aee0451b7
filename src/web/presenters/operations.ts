import type { BackgroundTask } from '../../domain/operations/background-tasks.js'
import type { StorageReport } from '../../domain/operations/machine.js'
import type { QueueOverview } from '../../domain/operations/queues.js'
import { isNearlyFull } from '../../domain/operations/storage.js'
import type { JobSummary } from '../../jobs/bullmq/job-summaries.js'
import type { DeadLetter } from '../../jobs/dead-letters/dead-letter.js'
import type { PerMinute } from '../../jobs/operations/queue-rates.js'
import type { QuarantinedMessage } from '../../persistence/inbound/quarantine.js'
import type { StoredCheck } from '../../persistence/operations/checks.js'
import type { DatabaseStatus } from '../../persistence/operations/database-status.js'
import type { PodProcess } from '../../persistence/operations/processes.js'
import type { TraceStep } from '../../persistence/operations/traces.js'
import type { PictureCount } from '../../persistence/photos/picture-counts.js'

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
    per_minute: {
      ...presentPerMinute(perMinute),
      by_end: {
        done: presentPerMinute(perMinute.byEnd.done),
        failed: presentPerMinute(perMinute.byEnd.failed),
        put_back: presentPerMinute(perMinute.byEnd.put_back),
      },
    },
    wait_ms: queue.wait,
    run_ms: queue.run,
    workers: queue.workers,
  }
}

function presentPerMinute({ minute, quarter, hour }: PerMinute) {
  return { last_1: minute, last_15: quarter, last_60: hour }
}

export function presentQueueJob({ id, name, addedAt, finishedAt, attempts, fault, origin }: JobSummary) {
  return {
    id,
    name,
    added_at: new Date(addedAt).toISOString(),
    finished_at: finishedAt === null ? null : new Date(finishedAt).toISOString(),
    attempts,
    fault,
    ...origin,
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

export function presentProcess({ id, kind, host, pid, version, startedAt, seenAt, facts: status }: PodProcess) {
  return {
    id,
    kind,
    host,
    pid,
    version,
    started_at: startedAt.toISOString(),
    seen_at: seenAt.toISOString(),
    rss_bytes: status.rssBytes,
    heap_bytes: status.heapBytes,
    busy_percent: status.busyPercent,
    event_loop_p99_ms: status.loopLagMs ?? null,
    threads: status.threads ?? null,
    queues: [...status.queues],
    jobs: [...status.jobs],
  }
}

export function presentDatabase(status: DatabaseStatus) {
  return {
    version: status.version,
    bytes: status.bytes,
    connections: status.connections,
    max_connections: status.maxConnections,
    longest_transaction_seconds: status.longestTransaction,
    waiting_locks: status.waitingLocks,
    transaction_age: status.transactionAge,
    replicas: status.replicas,
    replica_lag_seconds: status.replicaLag,
    slow_statements: status.slowStatements.map(({ text, count, maxMs }) => ({ text, count, max_ms: maxMs })),
    slow_statements_from: status.slowStatementSource,
    tables: status.tables.map(({ name, bytes, rows, deadRows, vacuumedAt }) => ({
      name,
      bytes,
      rows,
      dead_rows: deadRows,
      vacuumed_at: vacuumedAt?.toISOString() ?? null,
    })),
  }
}

export function presentStorage({ folders, store, pictures, movedPhotos, backup }: StorageReport) {
  return {
    folders: folders.map((folder) => ({
      folder: folder.folder,
      free_bytes: folder.freeBytes,
      total_bytes: folder.totalBytes,
      nearly_full: isNearlyFull(folder),
    })),
    store,
    pictures: pictures === undefined ? null : presentPictureCount(pictures),
    moved_photos: movedPhotos,
    backup: {
      age_seconds: backup.age,
      duration_seconds: backup.duration,
      bytes: backup.bytes,
      tool: backup.tool,
      verified_age_seconds: backup.verifiedAge,
      failed_runs: backup.failures,
    },
  }
}

function presentPictureCount({ files, bytes, orphans, orphanBytes, countedAt }: PictureCount) {
  return { files, bytes, orphans, orphan_bytes: orphanBytes, counted_at: countedAt.toISOString() }
}

export function presentOperation({ id, kind, state, done, total, skipped, errors }: BackgroundTask) {
  return { id, kind, state, done, total, skipped, errors: [...errors] }
}
