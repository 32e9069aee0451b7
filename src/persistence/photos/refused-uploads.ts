import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

/** The state of an upload, read in one snapshot. */
export interface UploadProgress {
  /** The photo is stored. */
  readonly isStored: boolean
  /** The reason why the upload was refused. */
  readonly refusal: string | null
  /** The job of the upload waits or runs. */
  readonly isPending: boolean
}

/** Finds the state by the guid of the photo and the outbox row of the job. Reads keys only. */
export async function findUploadProgress(db: Knex, guid: string, outboxId: number): Promise<UploadProgress> {
  const [progress] = await queryPrepared<UploadProgress>(db, 'upload-progress', PROGRESS_SQL, [guid, outboxId])
  if (progress === undefined) throw new Error('The statement upload-progress returned no row.')
  return progress
}

export async function refuseUpload(transaction: Knex.Transaction, guid: string, reason: string): Promise<void> {
  await transaction('refusedUploads').insert({ guid, reason }).onConflict('guid').ignore()
}

const PROGRESS_SQL = `
  select
    exists (select from photos where guid = $1) as "isStored",
    (select reason from refused_uploads where guid = $1) as refusal,
    exists (select from outbox where id = $2 and failed_at is null) as "isPending"`
