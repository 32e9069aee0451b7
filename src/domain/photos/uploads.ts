import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import { makePhotoJob, type PhotoUse, removePhotoFilesJob, type Upload } from '../../jobs/definitions.js'
import { enqueueJob, enqueueJobsOfKind } from '../../jobs/outbox/enqueue-jobs.js'
import { deleteOutboxRows } from '../../jobs/outbox/load-job.js'
import { QueueUnavailable } from '../../jobs/queues/queue-unavailable.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { countPhotoUsage } from '../../persistence/photos/photo-usage.js'
import { findUploadProgress } from '../../persistence/photos/refused-uploads.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { ownAspectIds } from '../contacts/aspects.js'
import { newGuid } from '../new-guid.js'
import { Refusal } from '../refusals.js'
import { PHOTO_LIMITS } from './limits.js'
import { readAltText } from './photos.js'
import { detectPictureFormat, FORMAT_HEAD_BYTES, fileExtensionForFormat } from './picture-formats.js'

export interface NewPhoto {
  /** Name in the folder of uploads. The file is deleted there in any case. */
  readonly file: string
  readonly use: PhotoUse
  /** Aspects that may see a published photo; none: only the viewer. */
  readonly aspects?: 'all' | readonly number[] | undefined
  /** The description of the photo. */
  readonly altText?: string | undefined
}

interface PendingUpload extends Upload {
  readonly outboxId: number
}

/**
 * Enqueues an upload and waits until a worker has stored the photo; resolves with its guid. After the timeout the upload is
 * withdrawn, so that a retry of the client creates no second photo.
 */
export async function uploadPhoto(
  services: Services,
  viewer: Viewer,
  photo: NewPhoto,
  withinMs: number = PHOTO_LIMITS.madeWithinMs,
): Promise<string> {
  const upload = await enqueueUpload(services, viewer, photo)
  const until = performance.now() + withinMs
  for (let wait: number = PHOTO_LIMITS.firstPollMs; performance.now() < until; wait *= 1.5) {
    const progress = await getProgress(services, upload)
    if (progress === 'made') return upload.guid
    if (progress === 'failed') break
    await pause(Math.min(wait, PHOTO_LIMITS.maxPollMs))
  }
  // If the outbox row is gone, the worker has finished at this moment.
  if (!(await withdrawUpload(services, upload)) && (await getProgress(services, upload)) === 'made') return upload.guid
  throw new QueueUnavailable('No worker has made a photo of an upload in time.')
}

async function enqueueUpload(
  services: Services,
  viewer: Viewer,
  { file, use, aspects, ...photo }: NewPhoto,
): Promise<PendingUpload> {
  try {
    if (use === 'published' && !viewer.scopes.has('private:modify')) {
      throw new Refusal(
        'insufficient_scope',
        'A photo that is neither pending nor a profile picture needs the scope private:modify.',
      )
    }
    const altText = readAltText(photo.altText ?? null)
    const format = detectPictureFormat(await services.pictures.readUploadStart(file, FORMAT_HEAD_BYTES))
    if (format === undefined) throw new Refusal('image_invalid', 'A photo must be a JPEG, PNG, GIF or WebP file.')
    const { userId } = viewer

    return await inRequestTransaction(services, async (transaction) => {
      await requireQuota(services, transaction, viewer)
      const aspectIds = use === 'published' ? await requireOwnAspects(transaction, viewer, aspects ?? []) : []
      const upload = {
        guid: newGuid(),
        file,
        name: `${newGuid()}.${fileExtensionForFormat(format)}`,
        userId,
        use,
        aspectIds,
        ...(altText !== null && { altText }),
      }
      const [outboxId] = await enqueueJobsOfKind(services, transaction, makePhotoJob, [upload])
      if (outboxId === undefined) throw new Error('A job that was stored has no id.')
      return { ...upload, outboxId }
    })
  } catch (error) {
    await services.pictures.deleteUploads([file])
    throw error
  }
}

/** Checks the quota of the viewer. It is not locked: simultaneous uploads can exceed it by their own number. */
async function requireQuota(
  { config }: Pick<Services, 'config'>,
  transaction: Knex.Transaction,
  viewer: Viewer,
): Promise<void> {
  const { photos, bytes } = await countPhotoUsage(transaction, viewer.personId, PHOTO_LIMITS.photosOfPerson)
  if (photos >= PHOTO_LIMITS.photosOfPerson) {
    throw new Refusal('photo_quota', `You have ${photos} photos, the maximum for an account: delete some first.`)
  }
  if (config.photoQuota > 0 && bytes >= config.photoQuota) {
    const quota = Math.round(config.photoQuota / 2 ** 20)
    throw new Refusal('photo_quota', `Your photos take the ${quota} MiB that you may use: delete some first.`)
  }
}

/** Returns the chosen aspects of the viewer. Ids of other users' aspects are ignored. */
async function requireOwnAspects(
  transaction: Knex.Transaction,
  viewer: Viewer,
  chosen: NonNullable<NewPhoto['aspects']>,
): Promise<readonly number[]> {
  if (chosen.length === 0) return []
  const aspectIds = await ownAspectIds(transaction, viewer, chosen)
  if (aspectIds.length === 0) throw new Refusal('aspects_not_found', 'None of these ids is an aspect of yours.')
  return aspectIds
}

/** Finds the progress of an upload. Throws the refusal of the worker if there is one. */
async function getProgress(
  { db }: Services,
  { guid, outboxId }: PendingUpload,
): Promise<'made' | 'under way' | 'failed'> {
  const { isStored, refusal: reason, isPending } = await findUploadProgress(db, guid, outboxId)
  if (reason !== null) throw new Refusal('image_invalid', reason)
  if (isStored) return 'made'
  return isPending ? 'under way' : 'failed'
}

/** Withdraws the job of an upload and deletes its file. False: the job is already done. */
async function withdrawUpload(services: Services, { outboxId, name, file }: PendingUpload): Promise<boolean> {
  const isWithdrawn = await inRequestTransaction(services, async (transaction) => {
    const existingRows = await deleteOutboxRows(transaction, [outboxId])
    // A worker may have crashed after it had moved the files to the public folder.
    if (existingRows.size > 0) await enqueueJob(services, transaction, removePhotoFilesJob, { names: [name] })
    return existingRows.size > 0
  })
  if (isWithdrawn) await services.pictures.deleteUploads([file])
  return isWithdrawn
}
