import type { Knex } from 'knex'
import type pg from 'pg'
import { openUnlimitedSession } from '../../database/database.js'
import { quoteNames } from '../table-catalogue.js'

/** Sessions that read the database as it was at one moment. */
interface SnapshotSessions {
  readonly first: pg.Client
  readonly all: readonly pg.Client[]
  close(): Promise<void>
}

/** Opens sessions on one snapshot. While they are open, the database cannot remove dead rows of any table. */
export async function openSnapshotSessions(db: Knex, count: number): Promise<SnapshotSessions> {
  const all: pg.Client[] = []
  const open = async () => {
    const session = await openUnlimitedSession(db, 'backup')
    all.push(session)
    await session.query('begin isolation level repeatable read, read only')
    return session
  }
  const close = async () => {
    await Promise.allSettled(all.map((session) => session.end()))
  }
  try {
    const first = await open()
    const { rows } = await first.query<{ id: string }>('select pg_export_snapshot() as id')
    while (all.length < count) await (await open()).query(`set transaction snapshot '${rows[0]?.id}'`)
    return { first, all, close }
  } catch (error) {
    await close()
    throw error
  }
}

const LOCK_TIMEOUT = '3s'

/** Begins a snapshot of a session, and holds up everything that would write to these tables until the session ends. */
export async function beginLockedSnapshot(session: pg.Client, tables: readonly string[]): Promise<void> {
  await session.query('begin isolation level repeatable read')
  await session.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`)
  // Before the first statement that reads, which fixes the snapshot.
  await session.query(`lock table ${quoteNames(tables)} in share mode`)
}
