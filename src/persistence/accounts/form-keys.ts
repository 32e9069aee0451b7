import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'

/** Stored with the sessions, so that the same maintenance deletes it. */
const MODEL = 'ConsoleForm'

const RETENTION_SQL = `interval '1 day'`
/** A process without an answer for this time has crashed. */
const LEASE_SQL = `interval '2 minutes'`

/** A sent form: claimed by this request, in work elsewhere, or answered with the address of a page. */
export interface FormKeyState {
  readonly state: 'claimed' | 'running' | 'done'
  readonly location?: string
}

/** Claims the key of a form. Of simultaneous requests, one gets it. */
export async function claimFormKey(db: Knex, idHash: Buffer): Promise<FormKeyState> {
  const { isClaimed, location } = await queryRow<{ readonly isClaimed: boolean; readonly location: string | null }>(
    db,
    `with claimed as (
       insert into oidc_records as known (model, id_hash, payload, expires_at) values (:model, :idHash, '{}', now() + ${RETENTION_SQL})
       on conflict (model, id_hash) do update set payload = '{}', expires_at = excluded.expires_at
         where known.payload ->> 'location' is null and known.expires_at < now() + ${RETENTION_SQL} - ${LEASE_SQL}
       returning id_hash
     )
     select (select count(*) from claimed) > 0 as "isClaimed",
       (select payload ->> 'location' from oidc_records where model = :model and id_hash = :idHash) as location`,
    { model: MODEL, idHash },
  )
  if (isClaimed) return { state: 'claimed' }
  return location === null ? { state: 'running' } : { state: 'done', location }
}

export async function storeFormResponse(db: Knex, idHash: Buffer, location: string): Promise<void> {
  await db('oidc_records')
    .where({ model: MODEL, idHash })
    .update({ payload: JSON.stringify({ location }) })
}

/** The form changed nothing and can be sent again. */
export async function releaseFormKey(db: Knex, idHash: Buffer): Promise<void> {
  await db('oidc_records').where({ model: MODEL, idHash }).delete()
}
