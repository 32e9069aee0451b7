import type { Knex } from 'knex'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { BENCH_MARKER } from './lived-pod.js'

/** Statements that the processes of the pod have run. */
export interface Statements {
  readonly count: number
  /** Statements by text, in descending order of their time. */
  readonly byText: readonly { readonly query: string; readonly calls: number; readonly ms: number }[]
}

/** Counts the statements of the pod during a piece of work. Needs pg_stat_statements. */
export async function countStatements(superuserUrl: string, during: () => Promise<unknown>): Promise<Statements> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: superuserUrl, applicationName: 'bench' })
  try {
    await db.raw('create extension if not exists pg_stat_statements')
    await db.raw('select pg_stat_statements_reset()')
    await setTracking(db, 'top')
    await during()
    await setTracking(db, 'none')
    const { rows } = await db.raw(
      `select query, calls::float8, total_exec_time as ms from pg_stat_statements
       where position(? in query) = 0 order by total_exec_time desc`,
      [BENCH_MARKER],
    )
    const byText: Statements['byText'] = rows
    return { count: byText.reduce((sum, { calls }) => sum + calls, 0), byText }
  } finally {
    await db.destroy()
  }
}

/** Disables pg_stat_statements until the next count, because it costs processor time. */
export async function stopCountingStatements(superuserUrl: string): Promise<void> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: superuserUrl, applicationName: 'bench' })
  try {
    await setTracking(db, 'none')
  } finally {
    await db.destroy()
  }
}

async function setTracking(db: Knex, statements: 'top' | 'none'): Promise<void> {
  await db.raw(`alter system set pg_stat_statements.track = '${statements}'`)
  await db.raw('select pg_reload_conf()')
}
