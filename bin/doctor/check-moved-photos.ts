import type { Knex } from 'knex'
import { type CheckResult, checkWarning } from '../../src/domain/operations/check-result.js'
import { PHOTO_LIMITS } from '../../src/domain/photos/limits.js'
import { countMovedFiles } from '../../src/persistence/photos/moved-photo-files.js'

/** Days that a worker may take to delete the files, for example while a backup runs. */
const DELETION_DAYS = 2

/** Finds files of photos of people who have moved away that no worker deletes although their time is over. */
export async function checkMovedPhotos(db: Knex): Promise<readonly CheckResult[]> {
  const { due } = await countMovedFiles(db, PHOTO_LIMITS.movedFileDays + DELETION_DAYS)
  if (due === 0) return []
  return [
    checkWarning(
      'moved photos',
      `Files of ${due} photos whose people moved away over ${PHOTO_LIMITS.movedFileDays} days ago are still here: start a worker, or delete them with "pod prune --files".`,
    ),
  ]
}
