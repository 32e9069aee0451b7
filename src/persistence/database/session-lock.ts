import type { Knex } from 'knex'
import { openUnlimitedSession } from './database.js'

/** Advisory locks of work that one process of a pod does at a time. They end with their session, so that a killed process leaves none. */
const LOCKS = {
  backup: [7_061_709, 1],
  'move of pictures': [7_061_709, 2],
  'move of the database': [7_061_709, 3],
  'take-over': [7_061_709, 4],
} as const

export type LockedWork = keyof typeof LOCKS

interface LockOptions {
  /** Aborted by the caller; the work also ends when the lock is lost. */
  readonly signal?: AbortSignal
  /** The error if another process has the lock. */
  readonly refuse: () => Error | Promise<Error>
}

/** Runs work while this process has the lock. The signal of the work is aborted when the connection that holds the lock breaks. */
export async function withSessionLock<Result>(
  db: Knex,
  work: LockedWork,
  { signal, refuse }: LockOptions,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const session = await openUnlimitedSession(db, `lock of the ${work}`)
  const lockLoss = new AbortController()
  session.once('end', () => lockLoss.abort(new Error(`The connection that held the lock of the ${work} was lost.`)))
  try {
    const { rows } = await session.query<{ locked: boolean }>('select pg_try_advisory_lock($1, $2) as locked', [
      ...LOCKS[work],
    ])
    if (rows[0]?.locked !== true) throw await refuse()
    return await run(signal === undefined ? lockLoss.signal : AbortSignal.any([signal, lockLoss.signal]))
  } finally {
    await session.end().catch(() => undefined)
  }
}

/** A condition of SQL: a session of this database has the lock. */
export function isLockedSql(work: LockedWork): string {
  const [space, id] = LOCKS[work]
  return `exists (
    select from pg_locks
    where locktype = 'advisory' and classid = ${space} and objid = ${id} and objsubid = 2 and granted
      and database = (select oid from pg_database where datname = current_database())
  )`
}
