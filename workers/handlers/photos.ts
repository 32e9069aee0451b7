import { PHOTO_LIMITS } from '../../src/domain/photos/limits.js'
import { listPhotoFiles } from '../../src/domain/photos/photos.js'
import { detectPictureFormat } from '../../src/domain/photos/picture-formats.js'
import { refuseUploadedPhoto, storePhoto } from '../../src/domain/photos/store-photo.js'
import { Refusal } from '../../src/domain/refusals.js'
import type {
  makeMissingSizesJob,
  makePhotoJob,
  previewPictureJob,
  removePhotoFilesJob,
  Upload,
} from '../../src/jobs/definitions.js'
import { type JobContext, postpone } from '../../src/jobs/outbox/load-job.js'
import { isBackupRunning } from '../../src/persistence/operations/backup-runs.js'
import { deleteLeftDrafts } from '../../src/persistence/photos/local-drafts.js'
import type { PreparedPictures } from '../../src/persistence/photos/picture-storage.js'
import type { Services } from '../../src/services/services.js'
import { runPeriodically } from '../run-periodically.js'
import type { JobHandlers } from './job-handlers.js'
import { makeMissingSizes } from './make-missing-sizes.js'
import { makePicture } from './make-picture.js'
import { makePreview } from './make-preview.js'

const REMOVE_AGAIN_SECONDS = 60

export const photoHandlers: JobHandlers<
  typeof makePhotoJob | typeof removePhotoFilesJob | typeof previewPictureJob | typeof makeMissingSizesJob
> = {
  'make-photo': makePhoto,
  'remove-photo-files': removePhotoFiles,
  'preview-picture': (services, { data }) => makePreview(services, data),
  'make-missing-sizes': (services, { data }) => makeMissingSizes(services, data),
}

/** A running backup may still have to read the files: its snapshot has the photos. */
async function removePhotoFiles(
  { db, pictures }: Services,
  { data, outboxId }: JobContext & { readonly data: { readonly names: readonly string[] } },
): Promise<void> {
  if (outboxId !== undefined && (await isBackupRunning(db))) return await postpone(db, outboxId, REMOVE_AGAIN_SECONDS)
  await pictures.delete(data.names.flatMap(listPhotoFiles))
}

async function makePhoto(services: Services, work: JobContext & { readonly data: Upload }): Promise<void> {
  const { file, name } = work.data
  let preparedPictures: PreparedPictures | undefined
  try {
    const bytes = await services.pictures.readUpload(file)
    const format = detectPictureFormat(bytes)
    if (format === undefined) throw new Refusal('image_invalid', 'The file is no longer a picture.')
    const { width, height, files } = await makePicture(bytes, format)
    const drafts = await services.pictures.prepare(
      new Map([...files].map(([prefix, picture]) => [`${prefix}${name}`, picture])),
    )
    preparedPictures = drafts
    const totalBytes = [...files].reduce((sum, [, picture]) => sum + picture.length, 0)
    await storePhoto(services, work, { width, height, bytes: totalBytes, publish: drafts.publish })
  } catch (error) {
    await preparedPictures?.discard()
    if (!(error instanceof Refusal)) throw error
    services.log.info({ err: error.cause, reason: error.message }, 'upload refused')
    await refuseUploadedPhoto(services, work, error)
  }
  await services.pictures.deleteUploads([file])
}

/** Deletes periodically the uploads that killed processes have left, also those in the temporary folder of this machine, with their exports. */
export function startUploadSweeper({ pictures, log }: Pick<Services, 'pictures' | 'log'>): { stop(): Promise<void> } {
  return runPeriodically(PHOTO_LIMITS.sweepIntervalMs, async () => {
    try {
      const uploads = await pictures.deleteOldUploads(new Date(Date.now() - PHOTO_LIMITS.uploadAgeMs))
      if (uploads > 0) log.info({ uploads }, 'abandoned uploads deleted')
      await deleteLeftDrafts()
    } catch (err) {
      log.error({ err }, 'abandoned uploads not deleted')
    }
  })
}
