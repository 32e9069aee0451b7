import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'
import type { ImportUpload } from './import-uploads.js'

/** Disk space of an upload while it arrives. */
export interface UploadSpace {
  readonly uid: string
  /** Bytes that its files may take, at least those that have arrived. */
  readonly reservedBytes: number
  /** Until this time one request writes to a file of the upload. */
  readonly writingUntil: Date | null
}

export async function findUploadSpace(db: Knex, uid: string): Promise<UploadSpace | undefined> {
  return db('uploadSpace').where({ uid }).first()
}

/**
 * Bytes that all other uploads may take on the disk, with the lists into which their archives are split: from the check until the import
 * has ended, and fewer for items that are tried again. Other transactions wait for the end of this one, so that two of them do not reserve
 * the same space.
 */
export async function lockReservedBytes(transaction: Knex.Transaction, uid: string): Promise<number> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtextextended('space of uploads', 0))`)
  const { bytes } = await queryRow<{ readonly bytes: number }>(
    transaction,
    `select coalesce(sum(
       case when uploads.state = 'expired' then 0 else greatest(reserved_bytes, archive_bytes + photo_bytes) end
       + case when ${HAS_LISTS_SQL} then coalesce(split_bytes, 0) else 0 end
     ), 0)::bigint as bytes
     from import_uploads as uploads left join upload_space using (uid) left join imports using (uid)
     where uid <> ? and (uploads.state <> 'expired' or split_bytes > 0)`,
    [uid],
  )
  return bytes
}

/** Whether the lists of the archive are stored. */
const HAS_LISTS_SQL = `
  case when imports.id is null then uploads.state in ('checking', 'checked')
  else imports.state in ('running', 'paused') or imports.state = 'done' and retry_at is not null end`

/** Stores how many bytes the lists of an uploaded archive take; an archive of a command has no space. */
export async function saveSplitBytes(db: Knex, uid: string, splitBytes: number): Promise<void> {
  await db('uploadSpace').where({ uid }).update({ splitBytes })
}

export async function saveUploadSpace(transaction: Knex.Transaction, space: UploadSpace): Promise<void> {
  await transaction('uploadSpace').insert(space).onConflict('uid').merge()
}

/** Stores how much of a file has arrived, if the request that has written it may still write. */
export async function finishWriting(
  transaction: Knex.Transaction,
  { uid, writingUntil }: Pick<UploadSpace, 'uid' | 'writingUntil'>,
  arrived: Partial<Pick<ImportUpload, 'archiveBytes' | 'photoBytes'>> & { readonly reservedBytes?: number },
): Promise<boolean> {
  const { reservedBytes, ...bytes } = arrived
  const rowCount = await transaction('uploadSpace')
    .where({ uid, writingUntil })
    .update({ ...(reservedBytes !== undefined && { reservedBytes }), writingUntil: null })
  if (rowCount === 0) return false
  if (Object.keys(bytes).length === 0) return true
  return (await transaction('importUploads').where({ uid, state: 'uploading' }).update(bytes)) > 0
}

/** Forgets the space of uploads whose files and lists are deleted. */
export async function deleteUnusedSpace(db: Knex): Promise<void> {
  await db.raw(`
    delete from upload_space where not exists (
      select from import_uploads as uploads left join imports using (uid)
      where uploads.uid = upload_space.uid and (uploads.state <> 'expired' or ${HAS_LISTS_SQL})
    )`)
}
