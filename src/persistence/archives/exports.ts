import type { Knex } from 'knex'
import { changeRows, queryRow, queryRows } from '../database/database.js'

export const EXPORT_KINDS = ['archive', 'copy', 'photos'] as const

/** `archive` contains the private key; `copy` is the same without it; `photos` is a zip of the pictures. */
export type ExportKind = (typeof EXPORT_KINDS)[number]

type ExportState = 'waiting' | 'running' | 'ready' | 'failed' | 'expired'

/** An export that a person has requested. */
export interface Export {
  readonly id: number
  readonly uid: string
  readonly userId: number
  readonly kind: ExportKind
  readonly state: ExportState
  readonly section: string | null
  readonly done: number
  readonly bytes: number | null
  readonly sha256: string | null
  readonly leftOut: number
  readonly error: string | null
  readonly createdAt: Date
  readonly finishedAt: Date | null
  readonly expiresAt: Date | null
}

/** The name of the file of an export in the store. */
export function exportFile({ uid }: Pick<Export, 'uid'>): string {
  return uid
}

/** Estimates the bytes of the file of an export: of photos by their sizes, of an archive by its rows, which are compressed. */
export async function estimateExportBytes(db: Knex, personId: number, kind: ExportKind): Promise<number> {
  const { bytes } = await queryRow<{ readonly bytes: number }>(
    db,
    kind === 'photos' ? PHOTO_BYTES_SQL : ARCHIVE_BYTES_SQL,
    { personId },
  )
  return bytes
}

const PHOTO_BYTES_SQL = `
  select coalesce(sum(bytes), 0)::double precision as bytes from photos where author_id = :personId and remote_path is null`

/** A row takes up to 1 kB with its names and signature. Such text shrinks to a quarter. */
const ARCHIVE_BYTES_SQL = `
  select ((
    (select count(*) + coalesce(sum(comments_count + likes_count), 0) from posts where author_id = :personId)
    + (select count(*) from comments where author_id = :personId)
    + (select count(*) from likes where author_id = :personId)
  ) * 1000 + (select coalesce(sum(octet_length(text)), 0) from posts where author_id = :personId)
  )::double precision / 4 as bytes`

/** Stores a new export; undefined: one of this kind is not finished yet. */
export async function insertExport(
  transaction: Knex.Transaction,
  row: Pick<Export, 'uid' | 'userId' | 'kind' | 'createdAt'>,
): Promise<Export | undefined> {
  const [newExport] = await transaction<Export>('exports').insert(row).onConflict().ignore().returning('*')
  return newExport
}

/** The newest first. */
export async function findExportsOfUser(db: Knex, userId: number): Promise<readonly Export[]> {
  return db('exports').where({ userId, deleted: false }).orderBy('id', 'desc').limit(LISTED)
}

/** Maximum number of listed exports: more than a person can have in the time for which rows are kept. */
const LISTED = 500

export async function findExport(db: Knex, userId: number, uid: string): Promise<Export | undefined> {
  return db('exports').where({ userId, uid, deleted: false }).first()
}

/** Exports of a kind that were requested since a time and have not failed; the oldest first. */
export async function findRecentExports(
  db: Knex,
  { userId, kind, since }: { readonly userId: number; readonly kind: ExportKind; readonly since: Date },
): Promise<readonly Export[]> {
  return db<Export>('exports')
    .where({ userId, kind })
    .where('createdAt', '>', since)
    .whereNot({ state: 'failed' })
    .orderBy('id')
}

/** Notes a download; false: there was one within the last hour. */
export async function updateDownload(db: Knex, id: number, at: Date): Promise<boolean> {
  const rowCount = await changeRows(
    db,
    `update exports set downloaded_at = :at
     where id = :id and (downloaded_at is null or downloaded_at < :at::timestamptz - interval '1 hour')`,
    { id, at },
  )
  return rowCount > 0
}

/** Hides an export from its owner. It still counts for the limit of the day. */
export async function markDeleted(db: Knex, id: number): Promise<void> {
  await db('exports').where({ id }).update({ deleted: true })
}

/** Claims the next export that waits, or whose worker has died, in the order of the requests. */
export async function claimExport(
  db: Knex,
  { deadAfterSeconds, attempts }: { readonly deadAfterSeconds: number; readonly attempts: number },
): Promise<Export | undefined> {
  const [row] = await queryRows<Export>(
    db,
    `update exports set state = 'running', attempts = attempts + 1, alive_at = now(), section = null, done = 0, left_out = 0
     where id = (
       select id from exports
       where not deleted and (state = 'waiting' or state = 'running' and alive_at < now() - make_interval(secs => ?) and attempts < ?)
       order by id limit 1 for update skip locked
     )
     returning id, uid, user_id as "userId", kind, state`,
    [deadAfterSeconds, attempts],
  )
  return row
}

/** Fails exports whose workers have died too often, and returns them: their drafts have to go. */
export async function failDeadExports(
  db: Knex,
  { deadAfterSeconds, attempts }: { readonly deadAfterSeconds: number; readonly attempts: number },
): Promise<readonly Pick<Export, 'uid'>[]> {
  return queryRows<Pick<Export, 'uid'>>(
    db,
    `update exports set state = 'failed', error = 'interrupted', finished_at = now()
     where state = 'running' and alive_at < now() - make_interval(secs => ?) and attempts >= ?
     returning uid`,
    [deadAfterSeconds, attempts],
  )
}

/** Notes how far an export is; false: it is no longer wanted. */
export async function recordExportProgress(
  db: Knex,
  id: number,
  { section, done }: { readonly section: string; readonly done: number },
): Promise<boolean> {
  const rowCount = await changeRows(
    db,
    `update exports set section = ?, done = ?, alive_at = now() where id = ? and state = 'running' and not deleted`,
    [section, done, id],
  )
  return rowCount > 0
}

/** Completes an export, and ends earlier exports of this kind. False: the export is no longer wanted. */
export async function completeExport(
  transaction: Knex.Transaction,
  { id, userId, kind }: Pick<Export, 'id' | 'userId' | 'kind'>,
  result: Pick<Export, 'bytes' | 'sha256' | 'leftOut' | 'finishedAt' | 'expiresAt'>,
): Promise<boolean> {
  const rowCount = await transaction('exports')
    .where({ id, state: 'running', deleted: false })
    .update({ ...result, state: 'ready', section: null })
  if (rowCount === 0) return false
  const earlier = transaction('exports').where({ userId, kind, state: 'ready' }).where('id', '<', id)
  await earlier.update({ expiresAt: result.finishedAt })
  return true
}

export async function failExport(db: Knex, id: number, error: string, finishedAt: Date): Promise<void> {
  await db('exports').where({ id, state: 'running' }).update({ state: 'failed', error, finishedAt })
}

/** Exports whose files have to go: their time is over, or their owner has deleted them. */
export async function findExpiredExports(db: Knex, now: Date, limit: number): Promise<readonly Export[]> {
  return db('exports')
    .where((over) => over.where({ state: 'ready' }).where('expiresAt', '<=', now))
    .orWhere((unwanted) => unwanted.where({ deleted: true }).whereNotIn('state', ['failed', 'expired']))
    .orderBy('id')
    .limit(limit)
}

export async function markExpired(db: Knex, ids: readonly number[]): Promise<void> {
  await db('exports')
    .whereIn('id', [...ids])
    .update({ state: 'expired' })
}

/** Ends all exports of a user at once: the files are removed with those whose time is over. */
export async function endExportsOfUser(transaction: Knex.Transaction, userId: number): Promise<void> {
  await transaction('exports').where({ userId, state: 'ready' }).update({ expiresAt: transaction.fn.now() })
  await transaction('exports').where({ userId }).whereIn('state', ['waiting', 'running']).update({ deleted: true })
}
