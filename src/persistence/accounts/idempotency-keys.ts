import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

/** The Idempotency-Key of a request and the authorization that sent it. */
export interface KeyOwner {
  readonly authorizationId: number
  readonly key: string
}

export interface ClaimedKey extends KeyOwner {
  readonly claim: string
}

export interface StoredResponse {
  readonly fingerprint: Buffer
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/**
 * State of a key: claimed by this request, in use by another one, lost by a request that took effect and crashed before its answer, or
 * answered.
 */
export type KeyState =
  | { readonly state: 'claimed'; readonly claim: string }
  | { readonly state: 'running' }
  | { readonly state: 'lost' }
  | ({ readonly state: 'answered' } & StoredResponse)

/** Claims a key. Of simultaneous requests, one gets it. A claim older than the lease is taken over if its request had no effect. */
export async function claimKey(db: Knex, { authorizationId, key }: KeyOwner): Promise<KeyState> {
  const [row] = await queryPrepared<Row>(db, 'claim-idempotency-key', CLAIMED_KEY_SQL, [authorizationId, key])
  if (row?.claim) return { state: 'claimed', claim: row.claim }
  if (row?.lost) return { state: 'lost' }
  // No row: another request inserted or deleted it at this moment.
  if (!row?.fingerprint || row.status === null) return { state: 'running' }
  const { fingerprint, status, headers, body } = row
  return { state: 'answered', fingerprint, status, headers: headers ?? {}, body }
}

/** Stores the answer for repeated requests. It is discarded if the claim was taken over. */
export async function storeIdempotentResponse(db: Knex, claimed: ClaimedKey, response: StoredResponse): Promise<void> {
  const { fingerprint, status, headers, body } = response
  const values = [
    claimed.authorizationId,
    claimed.key,
    claimed.claim,
    fingerprint,
    status,
    JSON.stringify(headers),
    body,
  ]
  await queryPrepared(db, 'store-idempotent-response', STORED_ANSWER_SQL, values)
}

/** Releases a key, so that a repeated request runs again, unless the first one took effect. */
export async function releaseKey(db: Knex, { authorizationId, key, claim }: ClaimedKey): Promise<void> {
  await queryPrepared(db, 'release-idempotency-key', RELEASED_KEY_SQL, [authorizationId, key, claim])
}

/**
 * Marks a claimed key as done in the transaction of the effect. Throws, so that everything rolls back, when another request has
 * claimed the key in the meantime.
 */
export async function markKeyDone(transaction: Knex.Transaction, claimed: ClaimedKey): Promise<void> {
  const { authorizationId, key, claim } = claimed
  const markedRows = await queryPrepared(transaction, 'mark-idempotency-key-done', DONE_KEY_SQL, [
    authorizationId,
    key,
    claim,
  ])
  if (markedRows.length === 0)
    throw new Error('The Idempotency-Key of this request was taken over by another one after the lease had ended.')
}

interface Row {
  readonly claim: string | null
  readonly lost: boolean
  readonly fingerprint: Buffer | null
  readonly status: number | null
  readonly headers: Record<string, string> | null
  readonly body: string | null
}

/** Longer than any request, including its queueing, upload and wait for a worker. */
const LEASE_SQL = `interval '4 minutes'`
const RETENTION_SQL = `interval '1 day'`

const CLAIMED_KEY_SQL = `
  with claimed as (
    insert into idempotency_keys as known (authorization_id, key) values ($1, $2)
    on conflict (authorization_id, key) do update set
      claim = excluded.claim, claimed_at = excluded.claimed_at, created_at = excluded.created_at,
      done = false, fingerprint = null, status = null, headers = null, body = null
    where (known.status is null and not known.done and known.claimed_at < now() - ${LEASE_SQL}) or known.created_at < now() - ${RETENTION_SQL}
    returning claim
  )
  select
    claim, false as lost, null::bytea as fingerprint, null::smallint as status, null::jsonb as headers, null as body
  from claimed
  union all
  select
    null, status is null and done and claimed_at < now() - ${LEASE_SQL}, fingerprint, status, headers, body
  from idempotency_keys
  where authorization_id = $1 and key = $2 and not exists (select from claimed)`

const DONE_KEY_SQL = `
  update idempotency_keys set done = true where authorization_id = $1 and key = $2 and claim = $3 returning claim`

const STORED_ANSWER_SQL = `
  update idempotency_keys set fingerprint = $4, status = $5, headers = $6, body = $7
  where authorization_id = $1 and key = $2 and claim = $3`

const RELEASED_KEY_SQL = `
  delete from idempotency_keys where authorization_id = $1 and key = $2 and claim = $3 and status is null and not done`
