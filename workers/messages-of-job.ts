import { createHash } from 'node:crypto'
import type { Job } from 'bullmq'
import { groupCommit } from '../src/concurrency/group-commit.js'
import type { InboundMessage } from '../src/federation/inbound/batch.js'
import { type AnyJob, type PostedEnvelope, receivePrivateJob, receivePublicJob } from '../src/jobs/definitions.js'
import { type FetchedMove, readPostedEnvelopes } from '../src/jobs/inbound/accepted-messages.js'
import { requireKnownVersion } from '../src/jobs/job-version.js'
import { readOutboxId } from '../src/jobs/outbox/load-job.js'
import { findMessageRows, type MessageRow } from '../src/jobs/outbox/message-rows.js'
import type { ResumedMessage } from '../src/jobs/waiting/resume-messages.js'
import type { Services } from '../src/services/services.js'

/** Whether a job has messages, in its data or in an outbox row; the inbound queues have other jobs too. */
export function isMessageJob({ name }: Job): boolean {
  return name === receivePublicJob.name || name === receivePrivateJob.name
}

/** Rows are read in groups: a stored parent resumes up to a thousand messages at once. */
const READING = { maxConcurrent: 2, maxItems: 256 }

/** Finds the messages of a job: those it carries, or the one of its outbox row, if the row still exists. */
export function createMessageReader({
  db,
  jobs,
}: Pick<Services, 'db' | 'jobs'>): (job: Job) => Promise<readonly InboundMessage[]> {
  const readRows = groupCommit(READING, (ids: readonly number[]) => findMessageRows(db, ids))
  return async (job) => {
    const knownVersion = jobs.versionOf(definitionOf(job))
    const outboxId = readOutboxId(job.data)
    if (outboxId === undefined) {
      requireKnownVersion(knownVersion, job.data)
      return messagesIn(job)
    }
    const row = (await readRows([outboxId])).find(({ id }) => id === outboxId)
    requireKnownVersion(knownVersion, row?.data)
    return row === undefined ? [] : [messageOfRow(row)]
  }
}

function messagesIn(job: Job): readonly InboundMessage[] {
  const messages: readonly PostedEnvelope[] =
    job.name === receivePublicJob.name ? readPostedEnvelopes(job.data) : job.data.messages
  const acceptedAt = new Date(job.data.acceptedAt)
  return messages.map((message) => ({ ...message, acceptedAt }))
}

function messageOfRow({ id, data, payload, acceptedAt, trace }: MessageRow): InboundMessage {
  // Written by resume-messages.ts or accepted-messages.ts.
  const { recipientGuid, times, last, movesFollowed, quarantineId, isReleased } = data as ResumedMessage & FetchedMove
  const resumed = { outboxId: id, times, last }
  return {
    envelope: payload,
    acceptedAt,
    trace: trace ?? undefined,
    resumed,
    movesFollowed,
    quarantineId,
    isReleased,
    ...(recipientGuid !== null && { recipientGuid }),
  }
}

/**
 * Adds a job for each of these messages of a job, so that none fails or waits because of another. The deduplication keys are derived
 * from their content: when this worker dies before the packed job has ended, the next one adds no second copy.
 */
export async function splitJob(
  services: Pick<Services, 'jobs'>,
  job: Job,
  messages: readonly InboundMessage[],
  { alone }: { readonly alone: boolean },
): Promise<void> {
  const markedAlone = alone ? { alone } : {}
  const jobData = messages.map(({ envelope, recipientGuid, acceptedAt, source, trace }) => ({
    acceptedAt: acceptedAt.toISOString(),
    messages: [{ recipientGuid, envelope, source, trace }],
    ...markedAlone,
  }))
  const { priority } = job.opts
  await services.jobs.addAll(definitionOf(job), jobData, {
    deduplicationKeys: messages.map(deduplicationKeyOf(job)),
    priority,
    canDivide: true,
  })
}

function definitionOf({ name }: Job): AnyJob {
  return name === receivePublicJob.name ? receivePublicJob : receivePrivateJob
}

function deduplicationKeyOf({ id }: Job): (inbound: InboundMessage) => string {
  return ({ recipientGuid = '', envelope }) => {
    return `of-${id}-${createHash('sha256').update(`${recipientGuid} ${envelope}`).digest('base64url')}`
  }
}
