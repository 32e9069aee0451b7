import type { QueueOverview } from '../../domain/operations/queues.js'
import type { JobSummary } from '../../jobs/bullmq/job-summaries.js'
import type { QuarantinedMessage } from '../../persistence/inbound/quarantine.js'

export function presentQueue({ wish, perMinute, ...queue }: QueueOverview) {
  return {
    name: queue.name,
    state: queue.state,
    stopped:
      wish === undefined
        ? null
        : {
            by: wish.actor,
            reason: wish.reason,
            since: wish.changedAt.toISOString(),
            until: wish.until?.toISOString() ?? null,
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
    times: message.times,
    received_at: message.receivedAt.toISOString(),
    last_at: message.lastAt.toISOString(),
    state: message.state,
    result: message.result,
  }
}
