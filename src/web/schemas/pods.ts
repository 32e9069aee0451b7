import { Type } from 'typebox'
import { Timestamp } from './formats.js'
import { PodRuleSchema } from './moderation/pod-rules.js'
import { nullable, refTo } from './references.js'

export const PodStatusName = Type.Enum([
  ...(['unchecked', 'no_errors', 'dns_failed', 'net_failed', 'ssl_failed'] as const),
  ...(['http_failed', 'version_failed', 'unknown_error'] as const),
])

const podFields = {
  host: Type.String({ description: 'With its port if it is not 443.' }),
  state: Type.Enum(['blocked', 'paused', 'asleep', 'away', 'proven', 'unproven'], {
    description: 'The state for deliveries.',
  }),
  status: PodStatusName,
  software: nullable(Type.String()),
  failures: Type.Integer({ description: 'Failed deliveries or checks in a row.' }),
  next_try_at: nullable(Timestamp),
  blocked_at: nullable(Timestamp),
  limited_at: nullable({ ...Timestamp, description: 'A rule silences everyone there.' }),
  paused_until: nullable(Timestamp),
  people: Type.Integer({ description: 'Known people.' }),
  waiting: Type.Integer({ description: 'Deliveries that have not arrived.' }),
  dead: Type.Integer({ description: 'Deliveries that were given up in the last 30 days.' }),
}

export const ListedPodSchema = Type.Object(
  { ...podFields, oldest_waiting_at: nullable(Timestamp) },
  { $id: 'ListedPod', description: 'Another pod, in short.' },
)

export const PodSchema = Type.Object(
  {
    ...podFields,
    oldest_waiting_at: nullable(Timestamp),
    delivering: Type.Boolean({ description: 'Deliveries are being sent to it now.' }),
    probing: Type.Boolean({ description: 'One delivery is being sent to find out whether it answers again.' }),
    local_followers: Type.Integer({
      description: 'Local users who follow its people, as pairs. Above 10 000: 10 001.',
    }),
    remote_followers: Type.Integer({
      description: 'Its people who follow local users, as pairs. Above 10 000: 10 001.',
    }),
    certificate_ends_at: nullable({ ...Timestamp, description: 'As the last probe of an operator has seen it.' }),
    software_version: nullable(Type.String()),
    last_error: nullable(Type.String()),
    errors: Type.Array(Type.Object({ at: Timestamp, status: PodStatusName, error: Type.String() }), {
      description: 'The last ten errors, the latest first.',
    }),
    offline_since: nullable(Timestamp),
    last_success_at: nullable(Timestamp),
    checked_at: nullable(Timestamp),
    skipped_deliveries: Type.Integer({ description: 'Deliveries that were not stored because the pod was asleep.' }),
    probe: nullable(
      Type.Object(
        {
          at: Timestamp,
          steps: Type.Array(
            Type.Object({
              step: Type.Enum(['dns', 'address', 'tcp', 'tls', 'http']),
              ok: Type.Boolean(),
              ms: Type.Integer(),
              detail: Type.String({ description: 'What was found, or why the step has failed.' }),
            }),
            { description: 'In the order in which a request connects, up to the first that fails.' },
          ),
        },
        { description: 'The last probe on request of an operator.' },
      ),
    ),
    rules: Type.Array(refTo(PodRuleSchema), { description: 'The rules for its host. The first one counts.' }),
    delivery_ms: Type.Object(
      { p50: nullable(Type.Integer()), p95: nullable(Type.Integer()) },
      { description: 'How long deliveries of the last 24 hours took. Null: there were none.' },
    ),
    days: Type.Array(
      Type.Object({
        day: Type.String({ description: 'In UTC, as YYYY-MM-DD.' }),
        delivered: Type.Integer(),
        failed: Type.Integer({ description: 'Deliveries without success, each attempt.' }),
        received: Type.Integer({ description: 'Messages of its people.' }),
        refused: Type.Integer({ description: 'Messages that were rejected, by the sender that they name.' }),
      }),
      { description: 'The last 14 days, the latest first. Days without an exchange are left out.' },
    ),
  },
  { $id: 'OtherPod', description: 'Another pod with its health.' },
)
