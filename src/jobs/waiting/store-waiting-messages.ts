import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { NO_COUNTS } from '../../persistence/inbound/raise-counts.js'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import { rowsAsColumns } from '../../persistence/sql/rows-as-columns.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import type { Services } from '../../services/services.js'
import { receivePrivateJob, receivePublicJob } from '../definitions.js'
import { type EntityKey, findStoredEntities } from './entity-key.js'
import { WAITING_LIMITS } from './limits.js'
import { buildFetchKey, type FetchKey, requestMissingEntities } from './request-missing-entities.js'
import { raiseCountsAndResumeMessages } from './resume-messages.js'
import { admitUnverified, enforceUnverifiedLimits } from './unverified-messages.js'

/** A message and the entity it waits for; its body is that of its job. */
export interface NewWaitingMessage {
  readonly waitsFor: EntityKey
  /** Set for a private message. */
  readonly recipientGuid?: string | undefined
  readonly payload: string
  readonly acceptedAt: Date
  /** How often it has waited before. */
  readonly times: number
  /** Addresses whose pods should have the entity; undefined: it cannot be fetched. */
  readonly fetchFrom?: string | undefined
  readonly fallbackFetchFrom?: string | undefined
  /** Only an entity of this author is accepted. */
  readonly author?: string | undefined
  /** Maximum waiting time in seconds. */
  readonly maxWaitSeconds?: number | undefined
  /** The host of its signer, verified or claimed; limits are counted by it. */
  readonly senderHost?: string | undefined
  /** The network address that posted it. */
  readonly source?: string | undefined
  readonly trace?: string | undefined
  /** The signature of the sender was verified. False: the signer is unknown. */
  readonly isVerified: boolean
  /** Set for the message of a move that a lookup has fetched. */
  readonly movesFollowed?: number | undefined
  /** The row of a message that is replayed from the quarantine. */
  readonly quarantineId?: number | undefined
  /** Filters do not apply. */
  readonly isReleased?: boolean | undefined
}

/** Stores waiting messages, and resumes those that wait for entities that are stored by now. */
export async function deferMessages(
  services: Pick<Services, 'jobs' | 'log'>,
  transaction: Knex.Transaction,
  waiting: readonly NewWaitingMessage[],
  stored: readonly EntityKey[],
): Promise<void> {
  const entityKeys = await storeWaitingMessages(services, transaction, waiting, stored)
  await raiseCountsAndResumeMessages(services, transaction, { entityKeys, counts: NO_COUNTS, jobs: [] })
}

/**
 * Stores messages that wait, and enqueues fetches of the entities they wait for. The locks of all these entities must be held. Returns
 * the entities that are stored by now: those given, and those that other transactions have stored in the meantime.
 */
export async function storeWaitingMessages(
  services: Pick<Services, 'jobs' | 'log'>,
  transaction: Knex.Transaction,
  waiting: readonly NewWaitingMessage[],
  stored: readonly EntityKey[],
): Promise<readonly EntityKey[]> {
  const storedMeanwhile = await findStoredEntities(transaction, [...new Set(waiting.map(({ waitsFor }) => waitsFor))])
  // Locks in one order: photos have no locks of their own, and two posts may have the same photos.
  const available = [...new Set([...stored, ...storedMeanwhile])].toSorted()
  const isStored = new Set(available)
  const acceptedMessages = await admitUnverified(services, transaction, waiting, isStored)
  const requestedKeys = await requestMissingEntities(
    services,
    transaction,
    acceptedMessages.filter(({ waitsFor, isVerified }) => isVerified && !isStored.has(waitsFor)),
  )
  await insertWaiting(transaction, acceptedMessages, requestedKeys)
  await enforceUnverifiedLimits(services, transaction, acceptedMessages)
  return available
}

/** Sorted, so that two batches cannot deadlock. A repeated message is stored once; a replay of it passes on its row and its release. */
async function insertWaiting(
  transaction: Knex.Transaction,
  messages: readonly NewWaitingMessage[],
  requested: ReadonlyMap<FetchKey, number>,
): Promise<void> {
  if (messages.length === 0) return
  const keys = messages.map(buildFetchKey)
  await queryPrepared(transaction, 'new-waiting', NEW_WAITING_SQL, [
    ...rowsAsColumns(messages, ['waitsFor', 'payload', 'acceptedAt']),
    messages.map(({ recipientGuid }) => (recipientGuid === undefined ? receivePublicJob.name : receivePrivateJob.name)),
    messages.map(({ recipientGuid }) => recipientGuid ?? null),
    messages.map(digestOf),
    messages.map(({ times }) => times + 1),
    messages.map(({ maxWaitSeconds = WAITING_LIMITS.waitSeconds }) => maxWaitSeconds),
    messages.map(({ waitsFor }, index) => keys[index]?.slice(waitsFor.length + 1) ?? null),
    keys.map((key) => (key && requested.get(key)) ?? null),
    messages.map(({ senderHost }) => senderHost ?? null),
    messages.map(({ source }) => source ?? null),
    messages.map(({ isVerified }) => isVerified),
    messages.map(({ payload }) => envelopeBytes(payload)),
    messages.map(({ trace }) => trace ?? null),
    messages.map(({ quarantineId }) => quarantineId ?? null),
    messages.map(({ isReleased }) => isReleased ?? false),
  ])
}

const NEW_WAITING_SQL = `
  insert into waiting (
    waits_for, payload, accepted_at, name, recipient_guid, digest, times, due_at, asked_of, asked_by,
    sender_host, source, signed, bytes, trace_id, quarantine_id, is_released
  )
  select distinct on (digest)
    waits_for, payload, accepted_at, name, recipient_guid, decode(digest, 'hex'), times,
    ${NOW_SQL} + make_interval(secs => max_wait_seconds), asked_of, asked_by,
    sender_host, source, signed, bytes, trace_id, quarantine_id, is_released
  from unnest(
    ${opaqueParam('$1', 'text[]')}, $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::float[],
    $9::text[], $10::bigint[], $11::text[], $12::text[], $13::boolean[], $14::int[], $15::uuid[],
    $16::bigint[], $17::boolean[]
  ) as row(
    waits_for, payload, accepted_at, name, recipient_guid, digest, times, max_wait_seconds, asked_of, asked_by,
    sender_host, source, signed, bytes, trace_id, quarantine_id, is_released
  )
  order by digest, is_released desc, quarantine_id
  on conflict (digest) do update
    set quarantine_id = excluded.quarantine_id, is_released = excluded.is_released or waiting.is_released
    where excluded.quarantine_id is not null`

function digestOf({ recipientGuid, payload }: NewWaitingMessage): string {
  return createHash('sha256')
    .update(JSON.stringify([recipientGuid, payload]))
    .digest('hex')
}
