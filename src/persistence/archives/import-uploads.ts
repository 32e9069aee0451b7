import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'

type UploadState = 'uploading' | 'uploaded' | 'checking' | 'checked' | 'failed' | 'started' | 'expired'

/** An archive that a person has uploaded. */
export interface ImportUpload {
  readonly id: number
  readonly uid: string
  readonly userId: number
  readonly state: UploadState
  readonly archiveBytes: number
  readonly photoBytes: number
  readonly attempts: number
  /** The claim of the worker that checks it; null: there is none. */
  readonly claimId: string | null
  readonly facts: unknown
  readonly report: unknown
  readonly sealedKey: Buffer | null
  readonly error: string | null
  readonly createdAt: Date
  readonly checkedAt: Date | null
}

/** The states in which an upload can still become an import. */
const OPEN_STATES = ['uploading', 'uploaded', 'checking', 'checked'] as const satisfies readonly UploadState[]

/** Stores an upload; undefined: the account has an open one. */
export async function insertUpload(
  transaction: Knex.Transaction,
  row: Pick<ImportUpload, 'uid' | 'userId' | 'createdAt'>,
): Promise<ImportUpload | undefined> {
  const [newUpload] = await transaction('importUploads')
    .insert({ ...row, state: 'uploading' })
    .onConflict()
    .ignore()
    .returning('*')
  return newUpload
}

export async function findOpenUpload(db: Knex, userId: number): Promise<ImportUpload | undefined> {
  return db('importUploads')
    .where({ userId })
    .whereIn('state', [...OPEN_STATES])
    .first()
}

/** An upload without the data of the archive and its key, which only a worker and the start of the import need. */
export type ListedUpload = Pick<ImportUpload, (typeof LISTED_COLUMNS)[number]>

const LISTED_COLUMNS = [
  'id',
  'uid',
  'userId',
  'state',
  'archiveBytes',
  'photoBytes',
  'attempts',
  'report',
  'error',
  'createdAt',
  'checkedAt',
] as const satisfies readonly (keyof ImportUpload)[]

/** A received upload without an import. */
export interface ReceivedUpload extends ListedUpload {
  readonly state: (typeof ARRIVED_STATES)[number]
}

const ARRIVED_STATES = ['uploaded', 'checking', 'checked', 'failed'] as const satisfies readonly UploadState[]

export async function listReceivedUploads(db: Knex, userId: number): Promise<readonly ReceivedUpload[]> {
  return db('importUploads')
    .where({ userId })
    .whereIn('state', [...ARRIVED_STATES])
    .orderBy('id', 'desc')
    .limit(LISTED)
    .select(LISTED_COLUMNS)
}

const LISTED = 100

/** The upload that the page shows. */
export async function findLastUpload(db: Knex, userId: number): Promise<ListedUpload | undefined> {
  return db('importUploads').where({ userId }).orderBy('id', 'desc').first(LISTED_COLUMNS)
}

/** Locks an upload of an account. */
export async function lockUpload(
  transaction: Knex.Transaction,
  userId: number,
  uid: string,
): Promise<ImportUpload | undefined> {
  return transaction('importUploads').where({ userId, uid }).forUpdate().first()
}

/** Uploads of an account whose check was requested since a time. */
export async function countUploadsSince(db: Knex, userId: number, since: Date): Promise<number> {
  const { count } = await queryRow<{ readonly count: number }>(
    db,
    `select count(*)::integer as count from import_uploads where user_id = ? and created_at > ? and state <> 'uploading'`,
    [userId, since],
  )
  return count
}

type UploadChanges = Partial<
  Omit<ImportUpload, 'id' | 'uid' | 'userId' | 'claimId'> & {
    readonly checkAt: Date | null
    readonly aliveAt: Date | null
  }
>

export async function changeUpload(db: Knex, id: number, changes: UploadChanges): Promise<void> {
  await db('importUploads').where({ id }).update(changes)
}

/** An upload as a worker has claimed it for a check. */
export type ClaimedUpload = Pick<ImportUpload, 'id' | 'claimId'>

/** Stores the end of a check, or of an attempt. False: the upload is gone, or another worker has claimed it. */
export async function endCheck(db: Knex, { id, claimId }: ClaimedUpload, changes: UploadChanges): Promise<boolean> {
  const { facts, report } = changes
  const rowCount = await db('importUploads')
    .where({ id, claimId, state: 'checking' })
    .update({
      ...changes,
      ...(facts !== undefined && { facts: JSON.stringify(facts) }),
      ...(report !== undefined && { report: JSON.stringify(report) }),
      aliveAt: null,
      claimId: null,
    })
  return rowCount > 0
}

/** Whether the lists of an upload are those of another worker, or of an import. */
export async function hasOtherLists(db: Knex, id: number): Promise<boolean> {
  const found = await db('importUploads').where({ id }).whereIn('state', ['checking', 'checked', 'started']).first('id')
  return found !== undefined
}

export async function deleteUpload(db: Knex, id: number): Promise<void> {
  await db('importUploads').where({ id }).delete()
}

/** Claims the next upload whose check is due, or whose worker has died, and counts the attempt. */
export async function claimUpload(
  db: Knex,
  { now, deadAfterSeconds }: { readonly now: Date; readonly deadAfterSeconds: number },
): Promise<ImportUpload | undefined> {
  const claimId = randomUUID()
  const [claimedRow] = await queryRows<{ readonly id: number }>(
    db,
    `update import_uploads set state = 'checking', alive_at = now(), attempts = attempts + 1, claim_id = ?
     where id = (
       select id from import_uploads
       where state in ('uploaded', 'checking') and check_at <= ? and (alive_at is null or alive_at < now() - make_interval(secs => ?))
       order by check_at, id limit 1 for update skip locked
     )
     returning id`,
    [claimId, now, deadAfterSeconds],
  )
  return claimedRow && db('importUploads').where({ id: claimedRow.id, claimId }).first()
}

/** A heartbeat of the check; false: as for `endCheck`. */
export async function recordUploadHeartbeat(db: Knex, { id, claimId }: ClaimedUpload): Promise<boolean> {
  const rowCount = await db('importUploads').where({ id, claimId, state: 'checking' }).update({ aliveAt: db.fn.now() })
  return rowCount > 0
}

/** Another worker may check the upload at once. The attempt does not count. */
export async function releaseUpload(db: Knex, { id, claimId }: ClaimedUpload): Promise<void> {
  await db('importUploads')
    .where({ id, claimId, state: 'checking' })
    .update({ aliveAt: null, claimId: null, attempts: db.raw('greatest(attempts - 1, 0)') })
}

/** Uploads whose files have to go: some time after the import is done, or after the upload. */
export async function findExpiredUploads(
  db: Knex,
  {
    doneBefore,
    uploadedBefore,
    limit,
  }: { readonly doneBefore: Date; readonly uploadedBefore: Date; readonly limit: number },
): Promise<readonly (Pick<ImportUpload, 'id' | 'uid'> & { readonly isDone: boolean })[]> {
  return queryRows<Pick<ImportUpload, 'id' | 'uid'> & { readonly isDone: boolean }>(
    db,
    `select import_uploads.id, import_uploads.uid, imports.state is not distinct from 'done' as "isDone" from import_uploads
     left join imports on imports.uid = import_uploads.uid
     where import_uploads.state <> 'expired' and (
       imports.state = 'done' and imports.finished_at < :doneBefore
       or import_uploads.created_at < :uploadedBefore and imports.state is distinct from 'running'
     )
     order by import_uploads.id limit :limit`,
    { doneBefore, uploadedBefore, limit },
  )
}

/** The files are gone: an import that was paused ends. */
export async function expireUploads(db: Knex, ids: readonly number[], now: Date): Promise<void> {
  await db.raw(
    `with expired as (
       update import_uploads set state = 'expired', sealed_key = null where id = any(?) returning uid
     )
     update imports set state = 'failed', error = 'expired', sealed_key = null, finished_at = ?
     from expired where imports.uid = expired.uid and imports.state = 'paused'`,
    [[...ids], now],
  )
}
