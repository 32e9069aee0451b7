import type { Job } from 'bullmq'
import type { Knex } from 'knex'
import type pg from 'pg'
import { queryPrepared, queryRows } from '../../persistence/database/database.js'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import type { JobOrigin } from '../bullmq/job-summaries.js'
import { inChunks } from '../chunks.js'
import { type DataOf, type PostedEnvelope, receivePrivateJob, receivePublicJob } from '../definitions.js'
import { readOutboxId } from '../outbox/load-job.js'
import type { JobQueues } from '../queues/job-queues.js'
import { INBOUND_QUEUES, type InboundQueue } from '../queues/queue-names.js'
import { WAITING_LIMITS } from '../waiting/limits.js'

/** A message that was answered with 202 and is not stored yet. */
export interface AcceptedMessage {
  readonly queue: InboundQueue
  readonly name: string
  /** Null: a public message. */
  readonly recipientGuid: string | null
  readonly acceptedAt: string
  readonly payload: string
  /** Absent: an earlier version has accepted the message. */
  readonly trace?: string
}

const JOB_BATCH_SIZE = 50

/** All accepted messages in the queues. Those of outbox rows are not included: the rows have them. */
export async function* acceptedMessages(jobs: Pick<JobQueues, 'notDone' | 'find'>): AsyncGenerator<AcceptedMessage> {
  for (const queue of INBOUND_QUEUES) {
    for await (const job of findJobs(jobs, queue, await jobs.notDone(queue))) yield* readAcceptedMessages(job)
  }
}

/** Reads jobs a batch at a time, so that few payloads are in memory. Jobs that have ended are left out. */
export async function* findJobs(
  jobs: Pick<JobQueues, 'find'>,
  queue: InboundQueue,
  ids: readonly string[],
): AsyncGenerator<Job> {
  for (const batch of inChunks(ids, JOB_BATCH_SIZE)) {
    const foundJobs = await Promise.all(batch.map((id) => jobs.find(queue, id)))
    yield* foundJobs.filter((job) => job !== undefined)
  }
}

/** The accepted messages of a job; none if an outbox row has the message. */
export function readAcceptedMessages({ name, data }: Pick<Job, 'name' | 'data'>): readonly AcceptedMessage[] {
  if (readOutboxId(data) !== undefined) return []
  if (name === receivePublicJob.name) return publicMessages(data)
  return name === receivePrivateJob.name ? privateMessages(data) : []
}

function publicMessages(data: DataOf<typeof receivePublicJob>): readonly AcceptedMessage[] {
  const { queue, name } = receivePublicJob
  return readPostedEnvelopes(data).map(({ envelope, trace }) => {
    return { queue, name, recipientGuid: null, acceptedAt: data.acceptedAt, payload: envelope, ...traceOf(trace) }
  })
}

/** The messages of a public job, also of one that an earlier version has added. */
export function readPostedEnvelopes({
  messages,
  sources,
  traces,
}: DataOf<typeof receivePublicJob>): readonly PostedEnvelope[] {
  return messages.map((message, index) =>
    typeof message === 'string'
      ? { envelope: message, source: sources?.[index] ?? undefined, trace: traces?.[index] ?? undefined }
      : message,
  )
}

function privateMessages({ messages, acceptedAt }: DataOf<typeof receivePrivateJob>): readonly AcceptedMessage[] {
  const { queue, name } = receivePrivateJob
  return messages.map(({ recipientGuid, envelope, trace }) => {
    return { queue, name, recipientGuid, acceptedAt, payload: envelope, ...traceOf(trace) }
  })
}

function traceOf(trace: string | undefined): Pick<AcceptedMessage, 'trace'> {
  return trace ? { trace } : {}
}

/**
 * Stores accepted messages as dead letters, which an operator can replay; returns their ids. A public message is one of the pod that
 * its unverified author claims.
 */
export async function insertDeadMessages(
  db: Knex,
  messages: readonly AcceptedMessage[],
  fault: string,
): Promise<readonly number[]> {
  const rows = messages.map((message) => ({ ...message, pod: claimedPodOf(message) }))
  const insertedRows = await queryRows<{ readonly id: number }>(
    db,
    `insert into outbox (queue, name, data, payload, accepted_at, trace_id, failed_at)
     select queue, name,
       jsonb_build_object('recipientGuid', "recipientGuid", 'times', 0, 'last', false, 'fault', :fault::text,
         'failure', jsonb_build_object('pod', pod)),
       payload, "acceptedAt", trace, now()
     from json_to_recordset(:messages::json)
       as message(queue text, name text, "recipientGuid" text, "acceptedAt" timestamptz, payload text, pod text, trace uuid)
     returning id`,
    { messages: JSON.stringify(rows), fault },
  )
  return insertedRows.map(({ id }) => id)
}

/** The pod and the trace of the only message of a job; a job with several messages has none of its own. */
export function originOfMessage(job: Pick<Job, 'name' | 'data'>): JobOrigin | undefined {
  const [message, ...others] = readAcceptedMessages(job)
  if (message === undefined || others.length > 0) return undefined
  return { pod: claimedPodOf(message), trace: message.trace ?? null }
}

function claimedPodOf({ recipientGuid, payload }: AcceptedMessage): string | null {
  if (recipientGuid !== null) return null
  const { author, sender } = peekEnvelope(payload)
  const address = author ?? sender
  return address?.replace(/^.*@/, '') ?? null
}

const INSERT_ACCEPTED_SQL = `
  insert into outbox (queue, name, data, payload, accepted_at, trace_id, sweep_at)
  select queue, name, jsonb_build_object('recipientGuid', "recipientGuid", 'times', 0, 'last', false),
    payload, "acceptedAt", trace, ${NOW_SQL}
  from json_to_recordset($1::json)
    as message(queue text, name text, "recipientGuid" text, "acceptedAt" timestamptz, payload text, trace uuid)`

/** Stores accepted messages as outbox rows, which the sweeper hands to the queue. */
export async function insertAcceptedMessages(
  session: Pick<pg.Client, 'query'>,
  messages: readonly AcceptedMessage[],
): Promise<void> {
  await session.query(INSERT_ACCEPTED_SQL, [JSON.stringify(messages)])
}

export interface FetchedMove {
  readonly movesFollowed?: number
}

/**
 * Stores the message of a move that this pod has fetched, to be received like one that was sent. It may wait once, for the new account:
 * a message that has waited does not know any more how many moves were followed to it.
 */
export async function insertFetchedMove(
  db: Knex,
  envelope: string,
  { fetchedAt, movesFollowed }: { readonly fetchedAt: Date; readonly movesFollowed: number },
): Promise<void> {
  const { queue, name } = receivePublicJob
  const data = { recipientGuid: null, times: WAITING_LIMITS.maxWaitsOfMessage - 1, last: false, movesFollowed }
  await queryPrepared(db, 'insert-fetched-move', INSERT_FETCHED_SQL, [queue, name, data, envelope, fetchedAt])
}

const INSERT_FETCHED_SQL = `
  insert into outbox (queue, name, data, payload, accepted_at, sweep_at) values ($1, $2, $3, $4, $5, ${NOW_SQL})`
