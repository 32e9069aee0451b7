import type { Knex } from 'knex'
import type pg from 'pg'
import { queryRow, queryRows } from '../database/database.js'
import { isLockedSql } from '../database/session-lock.js'

/** The table that is there while the database holds an unfinished restore. */
export const RESTORE_MARK = 'unfinished_restore'
/** The mark of a database that is the target of a move. */
export const MOVE_SOURCE = 'a move of the database'

export type RestoreTarget =
  /** `empty`: it has no tables of a pod. `unfinished`: it has those of a restore that was interrupted. */
  'empty' | 'unfinished' | 'full'

export async function inspectRestoreTarget(db: Knex): Promise<RestoreTarget> {
  const target = await queryRow<{ readonly hasMark: boolean; readonly hasTables: boolean }>(
    db,
    `
    select to_regclass('public.${RESTORE_MARK}') is not null as "hasMark",
      exists (select from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r') as "hasTables"`,
  )
  if (target.hasMark) return 'unfinished'
  return target.hasTables ? 'full' : 'empty'
}

/** Whether a command is moving this database to another server. */
export async function isDatabaseMoving(db: Knex): Promise<boolean> {
  const { isMoving } = await queryRow<{ readonly isMoving: boolean }>(
    db,
    `select ${isLockedSql('move of the database')} as "isMoving"`,
  )
  return isMoving
}

/** The source that is loaded into the database: the id of a backup, or `MOVE`. Undefined: none, or it has ended. */
export async function findUnfinishedRestore(db: Knex): Promise<string | undefined> {
  if ((await inspectRestoreTarget(db)) !== 'unfinished') return undefined
  const [mark] = await queryRows<{ readonly source: string }>(
    db,
    `select backup_id as source from public.${RESTORE_MARK}`,
  )
  // A move has emptied all tables, this one too, before it compares them.
  return mark?.source ?? MOVE_SOURCE
}

export async function markRestore(db: Knex, source: string): Promise<void> {
  await db.raw(`create table public.${RESTORE_MARK} as select ?::text as backup_id`, [source])
}

export async function unmarkRestore(session: Pick<pg.Client, 'query'>): Promise<void> {
  await session.query(`drop table public.${RESTORE_MARK}`)
}

/** Deletes links in mails, and sign-ins that wait for a second step: some were used or withdrawn after the backup. */
export async function deleteAccountTokens(db: Knex): Promise<void> {
  for (const table of ['account_tokens', 'second_steps']) await db(table).delete()
}

/** Ends the access of all applications; their users sign in again. */
export async function deleteAllAuthorizations(session: Pick<pg.Client, 'query'>): Promise<void> {
  await session.query('delete from authorizations')
}

/** The names of the processes of a pod that use this database. */
export async function listConnectedProcesses(db: Knex): Promise<readonly string[]> {
  const rows = await queryRows<{ readonly name: string }>(
    db,
    `
    select distinct substring(application_name from '^pod (web|worker)') as name from pg_stat_activity
    where datname = current_database() and application_name ~ '^pod (web|worker)'
    order by 1`,
  )
  return rows.map(({ name }) => name)
}

/** Drops the tables and functions of an unfinished restore. */
export async function dropUnfinished(db: Knex): Promise<void> {
  await forEachObject(db, (kind, name) => `drop ${kind} if exists ${name} cascade`)
  await db.raw('drop schema if exists bullmq cascade')
}

/** Moves all tables and functions of the pod and of its queue to schemas of another name. Nothing is deleted. */
export async function moveAside(db: Knex, suffix: string): Promise<readonly string[]> {
  const schema = `replaced_${suffix}`
  return db.transaction(async (transaction) => {
    await transaction.raw('create schema ??', [schema])
    await forEachObject(transaction, (kind, name) => `alter ${kind} ${name} set schema "${schema}"`)
    const { hasQueue } = await queryRow<{ readonly hasQueue: boolean }>(
      transaction,
      `select to_regnamespace('bullmq') is not null as "hasQueue"`,
    )
    if (!hasQueue) return [schema]
    await transaction.raw('alter schema bullmq rename to ??', [`bullmq_${schema}`])
    return [schema, `bullmq_${schema}`]
  })
}

/** Objects of an extension stay: they are needed again. Sequences of columns follow their tables. */
async function forEachObject(db: Knex, statement: (kind: string, name: string) => string): Promise<void> {
  const rows = await queryRows<{ readonly kind: string; readonly name: string }>(
    db,
    `
    select 'table' as kind, format('public.%I', relname) as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r'
        and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')
    union all
    select 'function', proc.oid::regprocedure::text from pg_proc as proc
      where pronamespace = 'public'::regnamespace
        and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = proc.oid and deptype = 'e')
    order by kind desc, name`,
  )
  for (const { kind, name } of rows) await db.raw(statement(kind, name))
}
