import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

/** How far an upload has come; all of it at one moment. */
export interface UploadProgress {
  readonly isKept: boolean
  /** Why no photo comes of it. */
  readonly refusal: string | null
  /** A worker has it in hand, or will have. */
  readonly isUnderWay: boolean
}

/** By the guid of its photo and the row of its job in the outbox. */
export async function findUploadProgress(db: Knex, guid: string, outboxId: number): Promise<UploadProgress> {
  const [found] = await queryPrepared<UploadProgress>(db, 'progress-of-upload', progress, [guid, outboxId])
  if (found === undefined) throw new Error('A statement without a table has one row.')
  return found
}

export async function refuseUpload(transaction: Knex.Transaction, guid: string, reason: string): Promise<void> {
  await transaction('refusedUploads').insert({ guid, reason }).onConflict('guid').ignore()
}

const progress = `
  select
    exists (select from photos where guid = $1) as "isKept",
    (select reason from refused_uploads where guid = $1) as refusal,
    exists (select from outbox where id = $2 and failed_at is null) as "isUnderWay"`
