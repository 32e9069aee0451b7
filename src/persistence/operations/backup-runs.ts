import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import { isLockedSql } from '../database/session-lock.js'
import { NOW_SQL } from '../sql/database-time.js'

export interface BackupRun {
  readonly id: string
  /** Host and process. */
  readonly process: string
  readonly startedAt: Date
}

export async function findLatestRun(db: Knex): Promise<BackupRun | undefined> {
  return db('backup_runs').orderBy('startedAt', 'desc').first('id', 'process', 'startedAt')
}

export async function recordBackupStart(db: Knex, id: string): Promise<void> {
  await db('backup_runs').insert({ id, process: `${hostname()}, process ${process.pid}` })
}

/** The result of a run: the stored figures, or the sentence of its error. */
export type BackupResult =
  | { readonly bytes: number; readonly bytesNew: number; readonly rowCount: number }
  | { readonly fault: string }

export async function recordBackupEnd(db: Knex, id: string, result: BackupResult): Promise<void> {
  await db('backup_runs')
    .where({ id })
    .update({ ...result, endedAt: db.raw(NOW_SQL) })
}

/** A backup that another program has made. */
interface RecordedBackup {
  readonly tool: string
  readonly at: Date
  readonly bytes: number | null
  readonly isVerified: boolean
}

/** Records a backup of another program, which then counts as the last complete backup. Returns its id. */
export async function recordForeignBackup(
  db: Knex,
  { tool, at, bytes, isVerified }: RecordedBackup,
  now: Date,
): Promise<string> {
  const id = `${at.toISOString().replaceAll(/[-:]|\.\d+/g, '')}-${randomBytes(2).toString('hex')}`
  const row = { id, process: tool, startedAt: at, endedAt: at, bytes, tool, verifiedAt: isVerified ? now : null }
  await db('backup_runs').insert(row)
  return id
}

/**
 * Claims the daily backup for this process. False: there is a complete backup since the last scheduled time, a process makes or
 * removes backups, or a process has claimed it in the last hour. A run that fails is therefore repeated each hour. `at` is a time in UTC as HH:MM.
 */
export async function claimDailyBackup(db: Knex, at: string): Promise<boolean> {
  const rows = await queryRows<{ readonly name: string }>(db, CLAIMED_BACKUP_SQL, { at })
  return rows.length > 0
}

const CLAIMED_BACKUP_SQL = `
  with today as (
    select (date_trunc('day', now() at time zone 'UTC') + cast(:at as time)) at time zone 'UTC' as scheduled
  ), latest as (
    select case when scheduled > now() then scheduled - interval '1 day' else scheduled end as scheduled from today
  )
  insert into periodic (name, last_run_at)
  select 'daily-backup', ${NOW_SQL} from latest
  where not exists (
    select from backup_runs
    where ended_at is not null and fault is null and tool is null and started_at >= latest.scheduled
  ) and not ${isLockedSql('backup')}
  on conflict (name) do update set last_run_at = excluded.last_run_at
    where periodic.last_run_at <= now() - interval '1 hour'
  returning name`

/**
 * Whether a backup is running that may still read pictures. A backup of more than a day is stuck, and pictures are deleted
 * nevertheless.
 */
export async function isBackupRunning(db: Knex): Promise<boolean> {
  const { isRunning } = await queryRow<{ readonly isRunning: boolean }>(db, RUNNING_BACKUP_SQL)
  return isRunning
}

const RUNNING_BACKUP_SQL = `
  select
    ${isLockedSql('backup')}
    and exists (select from backup_runs where ended_at is null and started_at > now() - interval '1 day') as "isRunning"`

/** Numbers of the last complete backup; null: there is none. Times are in seconds. */
export interface BackupMetrics {
  readonly age: number | null
  readonly duration: number | null
  readonly bytes: number | null
  /** The program that has made it; null: this one, or there is none. */
  readonly tool: string | null
  /** Since the newest recorded backup that was restored or checked. */
  readonly verifiedAge: number | null
  /** Runs that have failed or were killed. */
  readonly failures: number
}

/** Seconds since the last complete backup; null: there is none. Reads the tables of an older version, too. */
export async function findBackupAge(db: Knex): Promise<number | null> {
  const table = await queryRow<{ readonly isKnown: boolean }>(
    db,
    `select to_regclass('public.backup_runs') is not null as "isKnown"`,
  )
  if (!table.isKnown) return null
  const { age } = await queryRow<{ readonly age: number | null }>(
    db,
    `
    select extract(epoch from now() - max(started_at))::float as age
    from backup_runs where ended_at is not null and fault is null`,
  )
  return age
}

export async function readBackupMetrics(db: Knex): Promise<BackupMetrics> {
  return queryRow<BackupMetrics>(db, BACKUP_FIGURES_SQL)
}

const BACKUP_FIGURES_SQL = `
  select
    extract(epoch from now() - last.started_at)::float as age,
    extract(epoch from last.ended_at - last.started_at)::float as duration,
    last.bytes::float as bytes,
    last.tool,
    (
      select extract(epoch from now() - max(started_at))::float from backup_runs where verified_at is not null
    ) as "verifiedAge",
    (
      select count(*)::float from backup_runs
      where fault is not null or (ended_at is null and started_at < now() - interval '1 day')
    ) as failures
  from (select) as always
  left join (
    select * from backup_runs where ended_at is not null and fault is null order by started_at desc limit 1
  ) as last on true`
