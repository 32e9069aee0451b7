import type { Knex } from 'knex'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { OF_BENCH } from './lived-pod.js'

/** Statements that the processes of the pod have run. */
export interface Statements {
  readonly count: number
  /** By text, those with the most time of the server first. */
  readonly each: readonly { readonly query: string; readonly calls: number; readonly ms: number }[]
}

/** Counts the statements that run during a piece of work, the bench's own left out. Needs pg_stat_statements. */
export async function countStatements(superuserUrl: string, during: () => Promise<unknown>): Promise<Statements> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: superuserUrl, applicationName: 'bench' })
  try {
    await db.raw('create extension if not exists pg_stat_statements')
    await db.raw('select pg_stat_statements_reset()')
    await track(db, 'top')
    await during()
    await track(db, 'none')
    const { rows } = await db.raw(
      `select query, calls::float8, total_exec_time as ms from pg_stat_statements
       where position(? in query) = 0 order by total_exec_time desc`,
      [OF_BENCH],
    )
    const each: Statements['each'] = rows
    return { count: each.reduce((sum, { calls }) => sum + calls, 0), each }
  } finally {
    await db.destroy()
  }
}

/** Until the next count, the server spends no time on it. */
export async function countNoStatements(superuserUrl: string): Promise<void> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: superuserUrl, applicationName: 'bench' })
  try {
    await track(db, 'none')
  } finally {
    await db.destroy()
  }
}

async function track(db: Knex, statements: 'top' | 'none'): Promise<void> {
  await db.raw(`alter system set pg_stat_statements.track = '${statements}'`)
  await db.raw('select pg_reload_conf()')
}
