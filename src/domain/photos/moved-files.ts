import type { Knex } from 'knex'
import { isBackupRunning } from '../../persistence/operations/backup-runs.js'
import {
  countMovedFiles,
  findDueMovedFiles,
  type MovedFileCount,
  markMovedFilesDeleted,
} from '../../persistence/photos/moved-photo-files.js'
import type { PictureStorage } from '../../persistence/photos/picture-storage.js'
import { PHOTO_LIMITS } from './limits.js'
import { refuseDuringBackup } from './orphaned-files.js'
import { listPhotoFiles } from './photos.js'

/** Photos whose files are deleted together; each has five. */
const BATCH_SIZE = 20

/**
 * Deletes the files of accounts that have moved when their time is over, for at most this time. Returns the number of photos. A file that is
 * deleted and not noted is deleted again. While a backup runs nothing is deleted: it may still have to read the files.
 */
export async function deleteMovedFiles(
  db: Knex,
  pictures: Pick<PictureStorage, 'delete'>,
  { milliseconds, signal }: { readonly milliseconds: number; readonly signal: AbortSignal },
): Promise<number> {
  const until = performance.now() + milliseconds
  let deleted = 0
  while (!signal.aborted && performance.now() < until && !(await isBackupRunning(db))) {
    const due = await findDueMovedFiles(db, { days: PHOTO_LIMITS.movedFileDays, limit: BATCH_SIZE })
    if (due.length === 0) break
    await pictures.delete(due.flatMap(({ name, isUsed }) => (isUsed ? [] : listPhotoFiles(name))))
    await markMovedFilesDeleted(db, due)
    deleted += due.length
  }
  return deleted
}

/** Counts the photos of people who have moved away whose files are still on this pod. */
export async function readMovedFiles(db: Knex): Promise<MovedFileCount> {
  return countMovedFiles(db, PHOTO_LIMITS.movedFileDays)
}

interface RemovedMovedFiles {
  readonly days: number
  /** Photos. */
  readonly rows: number
  /** Unknown without a look at each file. */
  readonly bytes: null
  readonly oldest: Date | null
}

/** Deletes all files of moved photos whose time is over, by command. Refused while a backup runs. */
export async function removeMovedFiles(
  db: Knex,
  pictures: Pick<PictureStorage, 'delete'>,
  { dryRun, signal }: { readonly dryRun: boolean; readonly signal: AbortSignal },
): Promise<RemovedMovedFiles> {
  const { due, oldest } = await readMovedFiles(db)
  const report = { days: PHOTO_LIMITS.movedFileDays, bytes: null, oldest: due > 0 ? oldest : null }
  if (dryRun) return { ...report, rows: due }
  if (due > 0) await refuseDuringBackup(db)
  return { ...report, rows: await deleteMovedFiles(db, pictures, { milliseconds: Number.POSITIVE_INFINITY, signal }) }
}
