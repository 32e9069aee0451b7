import type pg from 'pg'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import { peekEnvelope, readMagicEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import { isUrl } from '../../protocol/is-url.js'
import type { JobFault, StagedJob } from './stage-jobs.js'

/** The inbound endpoint of another pod, and the posted body if it differs between recipients. */
interface Target {
  readonly host: string
  readonly port: number
  /** Null: the message is for the whole pod. */
  readonly guid: string | null
  readonly body: string | null
}

interface Message {
  readonly record: string
  /** Null: that of the sender. */
  readonly guid: string | null
  readonly verb: 'create' | 'retract'
  readonly isPublic: boolean
  readonly entity: string
  readonly envelope: string | null
  readonly priority: number
}

/** A public message that some pods have not accepted yet. They get the bytes that all others have. */
export async function carryPublicMessage(session: pg.Client, job: StagedJob): Promise<JobFault | undefined> {
  const [, name, urls, envelope] = job.args
  if (typeof envelope !== 'string' || !Array.isArray(urls)) return UNREADABLE
  const entity = payloadOf(envelope)
  if (entity === undefined) return UNREADABLE
  const { sender, author } = peekEnvelope(envelope)
  const message = {
    ...keyOf(String(name), job.id),
    isPublic: true,
    entity,
    envelope,
    priority: author === undefined || author === sender ? DELIVERY_PRIORITY.localUsers : DELIVERY_PRIORITY.relay,
  }
  return insertMessage(
    session,
    { ...job, retries: job.args[4] },
    message,
    urls.map((url) => [String(url), null]),
  )
}

/** A private message, which is encrypted for each recipient already. Its content is unknown here. */
export async function carryPrivateMessage(session: pg.Client, job: StagedJob): Promise<JobFault | undefined> {
  const [, name, bodies, retries] = job.args
  if (typeof bodies !== 'object' || bodies === null) return UNREADABLE
  const targets = Object.entries(bodies).map(([url, body]) => [url, String(body)] as const)
  const key = keyOf(String(name), job.id)
  const guid = key.record === 'contact' ? (targetOf(targets[0]?.[0] ?? '', null)?.guid ?? job.id) : key.guid
  const message = { ...key, guid, isPublic: false, entity: '', envelope: null, priority: DELIVERY_PRIORITY.localUsers }
  return insertMessage(session, { ...job, retries }, message, targets)
}

const UNREADABLE: JobFault = { fault: 'unreadable', lost: [] }

async function insertMessage(
  session: pg.Client,
  { args: [senderId], dueAt, createdAt, retries }: StagedJob & { readonly retries: unknown },
  message: Message,
  urls: readonly (readonly [url: string, body: string | null])[],
): Promise<JobFault | undefined> {
  const targets = urls.map(([url, body]) => targetOf(url, body))
  const known = targets.filter((target) => target !== undefined)
  const { rows } = await session.query<{ hasSender: boolean; places: number[] }>(INSERT_MESSAGE_WITH_DELIVERIES_SQL, [
    Number.isSafeInteger(senderId) ? senderId : -1,
    message.record,
    message.guid,
    message.verb,
    message.isPublic,
    message.entity,
    message.envelope,
    message.priority,
    Math.min(Math.max(Number(retries) || 0, 0), 1_000),
    dueAt ?? new Date(),
    createdAt,
    known.map(({ host }) => host),
    known.map(({ port }) => port),
    known.map(({ guid }) => guid),
    known.map(({ body }) => body),
  ])
  const { hasSender = false, places = [] } = rows[0] ?? {}
  if (!hasSender) return { fault: 'unknown sender', lost: [] }
  const lostRecipients = urls.filter((_, index) => targets[index] === undefined).map(([url]) => url.slice(0, 255))
  lostRecipients.push(...known.filter((_, index) => !places.includes(index + 1)).map(({ host }) => host))
  return lostRecipients.length === 0 ? undefined : { fault: 'unknown or blocked recipient', lost: lostRecipients }
}

/** Recipients that are unknown or on a blocked pod are left out. Returns the places of all others. */
const INSERT_MESSAGE_WITH_DELIVERIES_SQL = `
  with sender as (
    select people.id, people.guid from users join people on people.id = users.person_id where users.id = $1::bigint
  ), recipients as (
    select distinct on (pods.id, people.id) pods.id as pod_id, people.id as person_id, input.body
    from unnest($12::text[], $13::int[], $14::text[], $15::text[]) as input(host, port, guid, body)
    join pods on pods.host = input.host and pods.port = input.port and pods.blocked_at is null
    left join people on people.guid = input.guid and people.pod_id = pods.id
    where input.guid is null or people.id is not null
    order by pods.id, people.id
  ), message as (
    insert into outbound_messages (record, guid, verb, sender_id, public, entity, envelope, created_at)
    select $2, coalesce($3, sender.guid), $4, sender.id, $5, $6, $7, $11
    from sender where exists (select from recipients)
    on conflict (record, guid, verb) where record not in ('profile', 'contact')
      do update set envelope = excluded.envelope, entity = excluded.entity where outbound_messages.public = excluded.public
    returning id
  ), inserted as (
    insert into deliveries (message_id, pod_id, person_id, encrypted_envelope, priority, attempts, due_at)
    select message.id, recipients.pod_id, recipients.person_id, recipients.body, $8, $9, $10 from message cross join recipients
    on conflict (message_id, pod_id, (coalesce(person_id, 0))) do update
      set encrypted_envelope = excluded.encrypted_envelope, due_at = least(deliveries.due_at, excluded.due_at)
    returning pod_id, person_id
  )
  select exists (select from sender) as "hasSender", array(
    select input.position::int
    from unnest($12::text[], $13::int[], $14::text[]) with ordinality as input(host, port, guid, position)
    join pods on pods.host = input.host and pods.port = input.port
    join inserted on inserted.pod_id = pods.id
    left join people on people.id = inserted.person_id
    where people.guid is not distinct from input.guid
  ) as places`

/** Undefined: not an inbound endpoint. */
function targetOf(url: string, body: string | null): Target | undefined {
  if (!isUrl(url)) return undefined
  const { hostname: host, port, pathname } = new URL(url)
  const [, guid = null] = /^\/receive\/(?:public|users\/([^/]+))\/?$/.exec(pathname) ?? [undefined, undefined]
  const isPrivate = body !== null
  if (isPrivate !== (guid !== null) || !/^\/receive\/(public|users)/.test(pathname)) return undefined
  return { host, port: Number(port || 443), guid, body }
}

/** The payload of an envelope, which is not verified: other pods have accepted it. */
function payloadOf(envelope: string): string | undefined {
  try {
    return readMagicEnvelope(envelope).payload.toString('utf8').replaceAll('\0', '\ufffd')
  } catch {
    return undefined
  }
}

/** Names of records by those of entities and of the targets of retractions. */
const RECORDS: Readonly<Record<string, string>> = {
  Post: 'post',
  StatusMessage: 'post',
  Reshare: 'post',
  Photo: 'photo',
  Comment: 'comment',
  Like: 'like',
  Poll: 'poll',
  PollParticipation: 'poll_participation',
  Participation: 'participation',
  Conversation: 'conversation',
  Message: 'message',
  Profile: 'profile',
  Contact: 'contact',
  Person: 'contact',
  AccountDeletion: 'account_deletion',
  AccountMigration: 'account_migration',
}

/** Records of a person, whose guid is not part of their name. */
const OF_PERSON = ['profile', 'account_deletion', 'account_migration']

/** Reads the name of an entity: `Comment:GUID`, `Retraction:Comment:GUID`, `Profile:ADDRESS`. An unknown one is named after its job. */
function keyOf(name: string, jobId: string): Pick<Message, 'record' | 'guid' | 'verb'> {
  const [, retraction, type = '', guid = jobId] = /^(Retraction:)?([A-Za-z]+)(?::(.+))?$/.exec(name) ?? []
  const record = RECORDS[type]
  const verb = retraction === undefined ? 'create' : 'retract'
  if (record === undefined) return { record: 'unknown', guid: jobId, verb }
  return { record, guid: OF_PERSON.includes(record) && verb === 'create' ? null : guid, verb }
}
