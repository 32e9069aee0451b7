import type { Knex } from 'knex'
import { changeRows } from '../database/database.js'

/** Temporary records of the authorization server: sessions, and authorization requests in progress. */
export type RecordKind = 'Session' | 'Interaction'

export async function upsertRecord(
  db: Knex,
  kind: RecordKind,
  record: {
    readonly hash: Buffer
    readonly uid: string | undefined
    readonly payload: object
    readonly lifetime: number
  },
): Promise<void> {
  await db.raw(
    `insert into oidc_records (model, id_hash, uid, payload, expires_at)
     values (?, ?, ?, ?::jsonb, now() + make_interval(secs => ?))
     on conflict (model, id_hash) do update
     set uid = excluded.uid, payload = excluded.payload, expires_at = excluded.expires_at`,
    [kind, record.hash, record.uid ?? null, JSON.stringify(record.payload), record.lifetime],
  )
}

export async function findRecord(
  db: Knex,
  kind: RecordKind,
  by: { readonly idHash: Buffer } | { readonly uid: string },
): Promise<Record<string, unknown> | undefined> {
  const record: { readonly payload: Record<string, unknown> } | undefined = await db('oidc_records')
    .where({ model: kind, ...by })
    .where('expiresAt', '>', db.fn.now())
    .whereRaw('not exists (select from ended_sessions where ended_sessions.uid = oidc_records.uid)')
    .first('payload')
  return record?.payload
}

/** Deletes expired interactions and, beyond this many, the oldest ones: those without a sign-in first. */
export async function trimInteractions(db: Knex, kept: number): Promise<number> {
  return changeRows(
    db,
    `delete from oidc_records where model = 'Interaction' and (expires_at < now() or id_hash in (
       select id_hash from oidc_records where model = 'Interaction'
       order by payload #>> '{session,accountId}' is null, expires_at desc
       offset ?
     ))`,
    [kept],
  )
}

/**
 * Ends all sessions of an account, and every authorization request in which its password was given. `exceptUid`: a session that stays,
 * with the requests that began in it. Sign-ins that wait for their second step end, too.
 */
export async function deleteSessions(db: Knex, address: string, exceptUid?: string): Promise<void> {
  await db.raw(MARKED_ENDED_SQL, { address, exceptUid: exceptUid ?? null })
  await db.raw(
    `delete from oidc_records
     where (model = 'Session' and payload ->> 'accountId' = :address and uid is distinct from :exceptUid::text)
       or (model = 'Interaction' and :address in (
         payload #>> '{session,accountId}',
         payload #>> '{result,login,accountId}',
         payload #>> '{lastSubmission,login,accountId}'
       ) and (payload #>> '{session,uid}') is distinct from coalesce(:exceptUid::text, ''))`,
    { address, exceptUid: exceptUid ?? null },
  )
  await db('second_steps')
    .whereIn('userId', db('users').join('people', 'people.id', 'users.personId').where({ address }).select('users.id'))
    .delete()
}

export async function deleteRecord(db: Knex, kind: RecordKind, idHash: Buffer): Promise<void> {
  await db('oidc_records').where({ model: kind, idHash }).delete()
}

/**
 * Marks sessions as ended, also those that a request is just storing under another id: a request that has read a session may store it
 * again, and no later request finds it.
 */
const MARKED_ENDED_SQL = `
  insert into ended_sessions (uid)
  select uid from (
    select uid from oidc_records where model = 'Session' and payload ->> 'accountId' = :address
    union
    select browser_sessions.uid from browser_sessions
    join users on users.id = browser_sessions.user_id join people on people.id = users.person_id
    where people.address = :address and browser_sessions.last_used_at > now() - interval '15 days'
  ) as sessions
  where uid is not null and uid is distinct from :exceptUid::text
  order by uid
  on conflict do nothing`
