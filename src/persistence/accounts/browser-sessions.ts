import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** The data of a session at its use by a browser. */
export interface SessionUse {
  /** The uid of the authorization server's session. Its id changes at each sign-in, the uid does not. */
  readonly uid: string
  readonly address: string
  readonly at: Date
  readonly authenticatedAt: Date
  readonly acr: string
  readonly amr: readonly string[]
  readonly network: string
  readonly ip: string | null
  readonly browser: string
}

export interface BrowserSession {
  readonly uid: string
  readonly beganAt: Date
  readonly lastUsedAt: Date
  readonly network: string
  readonly browser: string
}

/**
 * Records the use of a session: its first one, each sign-in in it, and otherwise at most one in five minutes; of a sign-in the address too,
 * and of the account at most one in a day.
 */
export async function updateSessionUse(db: Knex, { amr, ...use }: SessionUse): Promise<void> {
  await db.raw(
    `with noted as (
     insert into browser_sessions (uid, user_id, began_at, last_used_at, authenticated_at, acr, amr, network, browser)
     select :uid, users.id, :at, :at, :authenticatedAt, :acr, :amr, :network, :browser
     from users join people on people.id = users.person_id where people.address = :address
     on conflict (uid) do update
     set user_id = excluded.user_id, last_used_at = excluded.last_used_at, authenticated_at = excluded.authenticated_at,
       acr = excluded.acr, amr = excluded.amr, network = excluded.network, browser = excluded.browser
     where browser_sessions.last_used_at < excluded.last_used_at - interval '5 minutes'
       or (browser_sessions.authenticated_at, browser_sessions.acr) <> (excluded.authenticated_at, excluded.acr)
     returning user_id, authenticated_at
   )
   update users set
     sign_in_ip = case when users.sign_in_at is distinct from noted.authenticated_at then cast(:ip as inet) else users.sign_in_ip end,
     sign_in_at = noted.authenticated_at, active_at = :at
   from noted where users.id = noted.user_id and (
     users.sign_in_at is distinct from noted.authenticated_at
     or coalesce(users.active_at, '-infinity') < cast(:at as timestamptz) - interval '1 day'
   )`,
    { ...use, amr: [...amr] },
  )
}

/** The sessions of a user that have not ended, the last used one first. */
export async function listBrowserSessions(db: Knex, userId: number): Promise<readonly BrowserSession[]> {
  return db('browser_sessions')
    .where({ userId })
    .whereExists(
      db('oidc_records')
        .where({ model: 'Session' })
        .where('expiresAt', '>', db.fn.now())
        .whereRaw('oidc_records.uid = browser_sessions.uid'),
    )
    .whereRaw('not exists (select from ended_sessions where ended_sessions.uid = browser_sessions.uid)')
    .orderBy([
      { column: 'lastUsedAt', order: 'desc' },
      { column: 'uid', order: 'asc' },
    ])
    .select('uid', 'beganAt', 'lastUsedAt', 'network', 'browser')
}

/** Ends one session of a user. False: it has ended, or is not a session of this user. */
export async function endBrowserSession(db: Knex, { userId, uid }: SessionOf): Promise<boolean> {
  await db.raw(
    `insert into ended_sessions (uid) select uid from browser_sessions where user_id = ? and uid = ? on conflict do nothing`,
    [userId, uid],
  )
  const rowCount = await db('oidc_records')
    .where({ model: 'Session', uid })
    .whereExists(db('browser_sessions').where({ userId, uid }))
    .delete()
  return rowCount > 0
}

interface SessionOf {
  readonly userId: number
  readonly uid: string
}

/** Counts an attempt of a session as wrong before it is checked. Returns how many there were in `seconds`; infinitely many: it has ended. */
export async function countAttempt(
  db: Knex,
  { uid, at, seconds }: { readonly uid: string; readonly at: Date; readonly seconds: number },
): Promise<number> {
  const recent = `wrong_proofs_since > :at::timestamptz - make_interval(secs => :seconds)`
  const [session] = await queryRows<{ readonly times: number }>(
    db,
    `update browser_sessions
     set wrong_proofs = case when ${recent} then wrong_proofs + 1 else 1 end,
       wrong_proofs_since = case when ${recent} then wrong_proofs_since else :at end
     where uid = :uid returning wrong_proofs as times`,
    { uid, at, seconds },
  )
  return session?.times ?? Number.POSITIVE_INFINITY
}

/** Subtracts an attempt that was right. */
export async function deleteAttempt(db: Knex, uid: string): Promise<void> {
  await db('browser_sessions').where({ uid }).where('wrongProofs', '>', 0).decrement('wrongProofs', 1)
}
