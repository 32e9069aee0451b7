import type { Knex } from 'knex'
import { isBackupRunning } from '../../persistence/operations/backup-runs.js'
import { findDueMovedFiles, markMovedFilesDeleted } from '../../persistence/photos/moved-photo-files.js'
import type { PictureStorage } from '../../persistence/photos/picture-storage.js'
import { PHOTO_LIMITS } from './limits.js'
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
