import type { Knex } from 'knex'
import { removePhotoFilesJob, type Upload } from '../../jobs/definitions.js'
import { enqueueJob, enqueueJobs, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import type { JobContext } from '../../jobs/outbox/load-job.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { Photo } from '../../persistence/models/photo.js'
import { User } from '../../persistence/models/user.js'
import { refuseUpload } from '../../persistence/photos/refused-uploads.js'
import { sharePhoto } from '../../persistence/photos/share-photo.js'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import { PHOTO_SIZE_PREFIXES, PROFILE_PICTURE_PREFIX, photoBaseUrl } from './photos.js'

type UploadWork = JobContext & { readonly data: Upload }

/** A photo whose sizes are generated and not yet moved to the public folder. */
interface ProcessedPhoto {
  readonly width: number
  readonly height: number
  /** Total of all sizes. */
  readonly bytes: number
  publish(): Promise<void>
}

/** Stores an upload as a photo and applies its use. Rolls back if another worker has finished the job in the meantime. */
export async function storePhoto(
  services: Services,
  work: UploadWork,
  { width, height, bytes, publish }: ProcessedPhoto,
): Promise<void> {
  const { guid, name, userId, use, aspectIds, altText = null } = work.data
  await inRequestTransaction(services, async (transaction) => {
    await work.finish(transaction)
    const author = await lockAuthor(transaction, userId)
    const photo = await Photo.query(transaction)
      .insert({
        guid,
        authorId: author.id,
        name,
        width,
        height,
        bytes,
        text: altText,
        public: false,
        pending: use === 'pending',
        createdAt: services.now(),
      })
      .returning('*')
    if (use === 'profile') await setProfilePicture(services, transaction, photo)
    if (use === 'published') {
      await sharePhoto(transaction, photo.id, aspectIds)
      await enqueueJobs(services, transaction, [newDispatchJob(author.id, { record: 'photo', guid })])
    }
    // Last, while the outbox row is locked against a withdrawal: files without a row would never be deleted.
    await publish()
  })
}

/** Finishes the job and stores the reason of the refusal for the request that waits for the photo. */
export async function refuseUploadedPhoto(services: Services, work: UploadWork, { message }: Refusal): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    await work.finish(transaction)
    await refuseUpload(transaction, work.data.guid, message)
    // A worker that crashed before may have moved its files to the public folder.
    await enqueueJob(services, transaction, removePhotoFilesJob, { names: [work.data.name] })
  })
}

/** Locks the account, so that a simultaneous closing waits and then deletes the photo too. */
async function lockAuthor(transaction: Knex.Transaction, userId: number): Promise<Person> {
  const user = await User.query(transaction).findById(userId).whereNull('closedAt').forShare()
  if (!user) throw new Refusal('account_closed', 'The account is closed.')
  return Person.query(transaction).findById(user.personId).throwIfNotFound()
}

async function setProfilePicture(services: Services, transaction: Knex.Transaction, photo: Photo): Promise<void> {
  const { authorId: personId, name } = photo
  const urlOf = (prefix: string) => `${photoBaseUrl(photo, services.config.url)}${prefix}${name}`
  await Person.lock(transaction, personId)
  await Person.updateProfile(transaction, personId, {
    imageUrl: urlOf(PROFILE_PICTURE_PREFIX),
    imageUrlMedium: urlOf(PHOTO_SIZE_PREFIXES.medium),
    imageUrlSmall: urlOf(PHOTO_SIZE_PREFIXES.small),
    updatedAt: services.now(),
  })
  await enqueueJobs(services, transaction, [newDispatchJob(personId, { record: 'profile', personId })])
}
