import { Type } from 'typebox'
import { QUEUES } from '../../jobs/queues/queue-names.js'
import { Timestamp } from './formats.js'
import { nullable } from './references.js'

/** `confirm` of a dangerous action on a queue. */
export const confirmBody = {
  confirm: Type.Optional(Type.String({ description: 'The name of the target. Without it nothing changes.' })),
}

const Times = Type.Object({
  p50: nullable(Type.Number()),
  p95: nullable(Type.Number()),
})

const perMinute = { last_1: Type.Number(), last_15: Type.Number(), last_60: Type.Number() }

export const QueueSchema = Type.Object(
  {
    name: Type.Enum([...QUEUES]),
    state: Type.Enum(['running', 'paused', 'draining', 'drained']),
    stopped: nullable(
      Type.Object(
        { by: Type.String(), reason: Type.String(), since: Timestamp, until: nullable(Timestamp) },
        { description: 'Who stopped the queue and why; null: it runs.' },
      ),
    ),
    waiting: Type.Integer(),
    active: Type.Integer(),
    delayed: Type.Integer(),
    failed: Type.Integer({ description: 'Dead letters that are jobs of this queue.' }),
    oldest_seconds: nullable(Type.Number({ description: 'Age of the job that is next in line; null: none waits.' })),
    per_minute: Type.Object(
      {
        ...perMinute,
        by_end: Type.Object({
          done: Type.Object(perMinute),
          failed: Type.Object(perMinute, { description: 'A failed run may be repeated.' }),
          put_back: Type.Object(perMinute, { description: 'The job needs a newer version of the program.' }),
        }),
      },
      { description: 'Runs of jobs a minute, over the last 1, 15 and 60 minutes: in all, and by how they ended.' },
    ),
    wait_ms: Times,
    run_ms: Times,
    workers: Type.Integer({ description: 'In all processes.' }),
  },
  { $id: 'Queue', description: 'A queue with its work; times are of the last hour, in milliseconds.' },
)

export const QuarantinedSchema = Type.Object(
  {
    id: Type.Integer(),
    channel: Type.Enum(['public', 'private']),
    recipient_guid: nullable(Type.String({ description: 'Of a private message.' })),
    source: nullable(Type.String({ description: 'The network that posted the message.' })),
    author: nullable(
      Type.String({ description: 'The claimed author; null for a private message, as the next three.' }),
    ),
    host: nullable(Type.String()),
    entity: nullable(Type.String()),
    guid: nullable(Type.String()),
    fault: Type.String(),
    detail: nullable(Type.String({ description: 'The reason in words; null for a private message.' })),
    bytes: Type.Integer(),
    replayable: Type.Boolean({ description: 'False: the message is too long to be stored as a whole.' }),
    digest: Type.String({ description: 'SHA-256 of recipient and payload, in hexadecimal digits.' }),
    trace: nullable(Type.String({ description: 'The `X-Request-Id` of the request that brought it.' })),
    times: Type.Integer({ description: 'How often an equal message was rejected.' }),
    received_at: Timestamp,
    last_at: Timestamp,
    state: Type.Enum(['held', 'replaying', 'replayed']),
    result: nullable(
      Type.String({ description: 'Of the last replay: `stored`, `repeated`, `ignored`, `waiting`, or the fault.' }),
    ),
  },
  { $id: 'QuarantinedMessage', description: 'A message of another pod that was rejected, without its content.' },
)

export const DeadLetterSchema = Type.Object(
  {
    id: Type.String({ description: '`outbox-17`, `delivery-17`, or queue and job.' }),
    queue: Type.String(),
    name: Type.String({ description: 'The kind of job.' }),
    fault: nullable(Type.String({ description: 'The error of the last attempt.' })),
    pod: nullable(
      Type.String({ description: 'The other pod; null where only the content shows it, as the next two.' }),
    ),
    entity: nullable(Type.String()),
    guid: nullable(Type.String()),
    attempts: nullable(Type.Integer()),
    trace: nullable(Type.String({ description: 'The `X-Request-Id` of the request or message that caused it.' })),
    first_at: Timestamp,
    last_at: Timestamp,
  },
  { $id: 'DeadLetter', description: 'Work that was given up, without its content.' },
)

export const TraceStepSchema = Type.Object(
  {
    at: Timestamp,
    event: Type.Enum([
      ...(['rejected', 'waiting', 'queued', 'given_up', 'stored', 'notified'] as const),
      ...(['sent', 'delivered', 'delivery_waiting', 'delivery_given_up', 'audited'] as const),
    ]),
    type: nullable(Type.String({ description: 'Of the entity; of queued work its queue and job.' })),
    guid: nullable(Type.String()),
    count: nullable(
      Type.Integer({
        description: 'Notifications, recipients of a sent message, pods where it has arrived, or attempts.',
      }),
    ),
    pod: nullable(
      Type.String({ description: 'Of a delivery: the other pod. Null if the message has arrived at several.' }),
    ),
    detail: nullable(Type.String({ description: 'A fault, an action, or what a message waits for.' })),
  },
  { $id: 'TraceStep', description: 'A row that belongs to a request.' },
)

export const QueueJobSchema = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    added_at: Timestamp,
    finished_at: nullable(Timestamp),
    attempts: Type.Integer({ description: 'Ended attempts.' }),
    fault: nullable(Type.String({ description: 'The error of the last attempt.' })),
    pod: nullable(Type.String({ description: 'Of a failed public message: the pod that its author claims.' })),
    trace: nullable(Type.String({ description: 'Of a failed message: the id of the request that brought it.' })),
  },
  { $id: 'QueueJob', description: 'A job of a queue, without its data.' },
)
