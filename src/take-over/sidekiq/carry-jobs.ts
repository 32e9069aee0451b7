import type pg from 'pg'
import { dispatchJob, makeMissingSizesJob, receivePrivateJob, receivePublicJob } from '../../jobs/definitions.js'
import { RECEIVE_LIMITS } from '../../jobs/inbound/limits.js'
import { carryPrivateMessage, carryPublicMessage } from './carry-messages.js'
import {
  type CarriedJobName,
  type CarriedJobs,
  findNextJob,
  type JobFault,
  markJobDone,
  type StagedJob,
  stageJobs,
  summariseJobs,
} from './stage-jobs.js'

type CarryJob = (session: pg.Client, job: StagedJob) => Promise<JobFault | undefined>

/**
 * Continues the waiting work in the Redis of Sidekiq: received messages, messages to other pods with the bytes that some pods have already,
 * and records that are not sent yet. Each job is carried over once, the oldest first, so that newer bytes replace older ones. No job
 * is added to a queue: the sweeper does that after the pod has started.
 */
export async function carryJobs(session: pg.Client, url: string, signal: AbortSignal): Promise<CarriedJobs> {
  await stageJobs(session, url)
  await session.query('begin')
  try {
    for (let job = await findNextJob(session); job !== undefined; job = await findNextJob(session)) {
      signal.throwIfAborted()
      await markJobDone(session, job.id, await CARRY_FUNCTIONS[job.name](session, job))
    }
    await session.query('commit')
  } catch (error) {
    await session.query('rollback').catch(() => undefined)
    throw error
  }
  return summariseJobs(session)
}

const CARRY_FUNCTIONS: Readonly<Record<CarriedJobName, CarryJob>> = {
  ReceivePublic: (session, { args: [envelope], createdAt }) => insertReceived(session, null, envelope, createdAt),
  ReceivePrivate: carryReceivedPrivate,
  SendPublic: carryPublicMessage,
  SendPrivate: carryPrivateMessage,
  DeferredDispatch: carryDispatch,
  ProcessPhoto: carryPhoto,
}

async function carryReceivedPrivate(
  session: pg.Client,
  { args: [userId, envelope], createdAt }: StagedJob,
): Promise<JobFault | undefined> {
  const { rows } = await session.query<{ guid: string }>(
    'select people.guid from users join people on people.id = users.person_id where users.id = $1',
    [idOf(userId)],
  )
  const [recipient] = rows
  return recipient === undefined
    ? { fault: 'unknown account', lost: [] }
    : insertReceived(session, recipient.guid, envelope, createdAt)
}

/** A received message, in the form in which messages are resumed. */
async function insertReceived(
  session: pg.Client,
  recipientGuid: string | null,
  envelope: unknown,
  acceptedAt: Date,
): Promise<JobFault | undefined> {
  if (typeof envelope !== 'string' || envelope === '') return UNREADABLE
  if (Buffer.byteLength(envelope) > RECEIVE_LIMITS.bodyBytes) return { fault: 'too large', lost: [] }
  const { queue, name } = recipientGuid === null ? receivePublicJob : receivePrivateJob
  await session.query('insert into outbox (queue, name, data, payload, accepted_at) values ($1, $2, $3, $4, $5)', [
    queue,
    name,
    JSON.stringify({ recipientGuid, times: 0, last: false }),
    envelope.replaceAll('\0', '\ufffd'), // as in the inbound endpoint
    acceptedAt,
  ])
  return undefined
}

const UNREADABLE: JobFault = { fault: 'unreadable', lost: [] }

/** Tables whose rows are sent by their guid, with the names of their records, by the model of diaspora*. */
const RECORDS: Readonly<Record<string, readonly [record: string, table: string]>> = {
  Post: ['post', 'posts'],
  StatusMessage: ['post', 'posts'],
  Reshare: ['post', 'posts'],
  Photo: ['photo', 'photos'],
  Comment: ['comment', 'comments'],
  Like: ['like', 'likes'],
  PollParticipation: ['poll_participation', 'poll_participations'],
  Participation: ['participation', 'participations'],
  Conversation: ['conversation', 'conversations'],
  Message: ['message', 'messages'],
}

/** A record that is not sent yet: this pod finds its recipients. */
async function carryDispatch(
  session: pg.Client,
  { args: [userId, model, id, options] }: StagedJob,
): Promise<JobFault | undefined> {
  const select = selectRecord(String(model))
  if (select === undefined) return { fault: 'no record of this pod', lost: [] }
  const { rowCount } = await session.query(
    `insert into outbox (queue, name, data, sender_id)
     select $1, $2, found.data, users.person_id from users cross join (${select}) as found(data) where users.id = $3`,
    [
      dispatchJob.queue,
      dispatchJob.name,
      idOf(userId),
      idOf(id),
      ...(model === 'Profile' ? [subscribersOf(options)] : []),
    ],
  )
  return rowCount === 0 ? { fault: 'the record is gone', lost: [] } : undefined
}

/** Selects the data of dispatches; parameter 4 is the id in the source. Undefined: this pod does not send the model. */
function selectRecord(model: string): string | undefined {
  if (model === 'Profile') {
    return `
      select jsonb_strip_nulls(jsonb_build_object('record', 'profile', 'personId', map.new_id, 'to', recipients.new_id))
      from take_over.profiles as source join take_over.map_people as map on map.id = source.person_id and map.user_id is not null
      left join (select unnest($5::bigint[])) as subscriber(id) on true
      left join take_over.map_people as recipients on recipients.id = subscriber.id
      where source.id = $4`
  }
  if (model === 'Contact') {
    return `
      select jsonb_build_object(
        'record', 'contact', 'userId', contacts.user_id, 'personId', contacts.person_id, 'sharing', contacts.receiving,
        'blocking', exists (select from blocks where blocks.user_id = contacts.user_id and blocks.person_id = contacts.person_id)
      ) from contacts where contacts.id = $4`
  }
  const [record, table] = RECORDS[model] ?? []
  return (
    record &&
    `select jsonb_build_object('record', '${record}', 'guid', ${table}.guid) from ${table} where ${table}.id = $4`
  )
}

/** The people to whom alone a profile is sent. */
function subscribersOf(options: unknown): readonly number[] {
  const ids =
    typeof options === 'object' && options !== null && 'subscriber_ids' in options ? options.subscriber_ids : []
  return Array.isArray(ids) ? ids.map(idOf) : []
}

async function carryPhoto(session: pg.Client, { args: [id] }: StagedJob): Promise<JobFault | undefined> {
  const { rowCount } = await session.query(
    `insert into outbox (queue, name, data) select $1, $2, jsonb_build_object('name', photos.name)
     from photos join people on people.id = photos.author_id and people.pod_id is null
     where photos.id = $3 and photos.name <> ''`,
    [makeMissingSizesJob.queue, makeMissingSizesJob.name, idOf(id)],
  )
  return rowCount === 0 ? { fault: 'the record is gone', lost: [] } : undefined
}

/** -1 is the id of no row. */
function idOf(value: unknown): number {
  const id = Number(value)
  return Number.isSafeInteger(id) ? id : -1
}
