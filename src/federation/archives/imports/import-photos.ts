import type { Knex } from 'knex'
import { newGuid } from '../../../domain/new-guid.js'
import { hasSpaceFor, readFolderSpace } from '../../../domain/operations/storage.js'
import { importedPhotoName, PICTURE_ENDING } from '../../../domain/photos/imported-photos.js'
import { PHOTO_LIMITS } from '../../../domain/photos/limits.js'
import {
  listPhotoFiles,
  PHOTO_SIZE_PREFIXES,
  PROFILE_PICTURE_PREFIX,
  UPLOADS_PATH,
} from '../../../domain/photos/photos.js'
import { Refusal } from '../../../domain/refusals.js'
import { enqueueJobs, newDispatchJob } from '../../../jobs/outbox/enqueue-jobs.js'
import {
  hadPhotoBefore,
  insertUnplacedPhoto,
  type PlacedPhoto,
  placeImportedPhotos,
  storeUnplacedPhoto,
  type UnplacedPhoto,
} from '../../../persistence/archives/imported-photos.js'
import {
  type ItemOutcome,
  isStoppedBeforePhoto,
  listImportedPhotoNames,
} from '../../../persistence/archives/imports.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Person } from '../../../persistence/models/person.js'
import { countPhotoUsage } from '../../../persistence/photos/photo-usage.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { IMPORT_LIMITS } from '../limits.js'
import { openPhotoFetches, type PhotoFetches } from '../lookups/fetch-photos.js'
import { isOwner } from '../owner.js'
import type { ArchiveFile } from '../reading/archive-file.js'
import { profilePictureName, readPhotoNames, readPhotoOfZip, readPhotosZip } from '../reading/archive-photos.js'
import { spooledBatches } from '../reading/spool-archive.js'
import type { ZipEntry } from '../reading/zip-file.js'
import type { ImportContext, MakePicture } from './import-context.js'
import { readArchivedEntity } from './read-entity.js'

interface PhotosWork {
  /** Undefined: no zip was given. */
  readonly file: ArchiveFile | undefined
  readonly folder: string
  readonly profile: Readonly<Record<string, unknown>>
  /** Entries of the zip that are done. */
  readonly fromEntry: number
  /** Bytes of the photos that earlier attempts have fetched. */
  readonly fetchedBytes: number
  readonly makePicture: MakePicture
  save(entries: number, outcomes: readonly ItemOutcome[], fetchedBytes: number): Promise<void>
  reportProgress(done: number): void
  /** Called after each photo. */
  passTurn(): Promise<void>
}

/** A picture may be larger than an upload: older pods kept the original. */
const TIMES_UPLOAD = 4

/** The sizes of a picture take more space than the picture in the zip. */
const STORED_OF_ZIP = 2

/**
 * Stores the pictures that photos of the archive are named like: those of the zip, then those that the old pod still has. Each is
 * decoded and made anew, like an upload.
 */
export async function importPhotos(context: ImportContext, work: PhotosWork): Promise<void> {
  const { services, user, signal } = context
  const names = await readPhotoNames(work, work.profile)
  const { guid } = await Person.query(services.db).findById(user.personId).throwIfNotFound()
  let [done, fetchedBytes] = [0, work.fetchedBytes]
  const quota = await openQuota(context, work)
  const seenNames = new Set<string>()
  const importPhoto = async (name: string, store: () => Promise<StoredPhoto>, entry?: ZipEntry) => {
    seenNames.add(name)
    done += 1
    if (done <= work.fromEntry) return quota.countEarlier(name, entry?.bytes ?? 0)
    signal.throwIfAborted()
    const { outcome, reason, bytes } = await store()
    quota.count(bytes)
    if (entry === undefined) fetchedBytes += bytes
    try {
      await work.save(done, [{ section: 'photos', position: done, ref: name, outcome, reason }], fetchedBytes)
    } catch (error) {
      if (outcome === 'imported') await deleteIfStopped(context, done, importedPhotoName(guid, name))
      throw error
    }
    work.reportProgress(done)
    await work.passTurn()
  }
  // A worker that has died after storing the first photo of this attempt has no outcome of it: the photo is stored anew.
  const isPresent = async (oldName: string, name: string): Promise<boolean> =>
    (await services.pictures.find(name)) !== undefined &&
    (done > work.fromEntry + 1 ||
      (await hadPhotoBefore(services.db, importIdOf(context), { personId: user.personId, name, oldName })))
  const mayStore = () => quota.isFree()
  if (work.file !== undefined) {
    await readPhotosZip(work.file, names, (entry) =>
      importPhoto(
        entry.name,
        () => storeEntry(context, work.makePicture, { entry, personGuid: guid, isPresent, mayStore }),
        entry,
      ),
    )
  }
  const fetches = await openPhotoFetches(services, {
    ...work,
    oldAddress: context.oldAddress,
    maxBytes: maxPhotoBytes(services),
  })
  for (const name of names) {
    if (seenNames.has(name)) continue
    const mayFetch = () => fetchedBytes < services.config.importPhotoBytes
    const photo = { name, personGuid: guid, fetches, mayFetch, isPresent, mayStore }
    await importPhoto(name, () => storeFetched(context, work.makePicture, photo))
  }
}

interface Quota {
  isFree(): boolean
  count(bytes: number): void
  /** Counts a photo of the zip if an earlier attempt has stored it. */
  countEarlier(name: string, bytes: number): void
}

/**
 * The bytes that photos of the account take, and may take: an account that arrives with its photos may have more than `PHOTO_QUOTA`. Those
 * of this import are in no row before they are placed, so each attempt adds them up.
 */
async function openQuota({ services, user, ...context }: ImportContext, work: PhotosWork): Promise<Quota> {
  const { db, config } = services
  const maxBytes = Math.max(config.photoQuota, STORED_OF_ZIP * config.importPhotoBytes)
  let { bytes: used } = await countPhotoUsage(db, user.personId, PHOTO_LIMITS.photosOfPerson)
  used += work.fetchedBytes
  const earlierNames = new Set<string>()
  if (work.fromEntry > 0 && context.importId !== undefined) {
    for await (const page of listImportedPhotoNames(db, context.importId, PHOTO_BATCH_SIZE, ['imported'])) {
      for (const name of page) earlierNames.add(name)
    }
  }
  return {
    isFree: () => config.photoQuota === 0 || used < maxBytes,
    count(bytes) {
      used += bytes
    },
    countEarlier(name, bytes) {
      if (earlierNames.has(name)) used += bytes
    },
  }
}

function importIdOf({ importId }: ImportContext): number {
  if (importId === undefined) throw new Error('A check stores no photos.')
  return importId
}

/** A file without an outcome must not stay after a cancellation. An import that continues needs the file, or stores it anew. */
async function deleteIfStopped(context: ImportContext, position: number, name: string): Promise<void> {
  const { services } = context
  try {
    if (!(await isStoppedBeforePhoto(services.db, importIdOf(context), position))) return
    await services.pictures.delete(listPhotoFiles(name))
  } catch (err) {
    services.log.debug({ err, name }, 'photo of a stopped import not deleted') // the first error is thrown
  }
}

function maxPhotoBytes({ config }: ImportContext['services']): number {
  return config.photoBytes * TIMES_UPLOAD
}

/** The disk keeps free space, whatever an archive or the old pod sends. A store on other machines has its own limits. */
async function requireSpace({ config, pictures }: ImportContext['services'], bytes: number): Promise<void> {
  if (pictures.kind !== 'folder') return
  if (hasSpaceFor(await readFolderSpace(config.uploadsDir), bytes, IMPORT_LIMITS.keptFreeBytes)) return
  throw new ArchiveError('no_space', 'The disk has no space for the photos of the archive.')
}

interface StoredPhoto extends Pick<ItemOutcome, 'outcome' | 'reason'> {
  /** Of all sizes that were stored. */
  readonly bytes: number
}

interface PhotoPlace {
  readonly personGuid: string
  /** Whether the account has had the photo before. */
  isPresent(oldName: string, name: string): Promise<boolean>
  /** Whether the quota of the account is not used up. */
  mayStore(): boolean
}

async function storeEntry(
  { services }: ImportContext,
  makePicture: MakePicture,
  { entry, personGuid, isPresent, mayStore }: PhotoPlace & { readonly entry: ZipEntry },
): Promise<StoredPhoto> {
  const name = importedPhotoName(personGuid, entry.name)
  if (!PICTURE_ENDING.test(entry.name) || entry.bytes > maxPhotoBytes(services)) return UNUSABLE
  if (await isPresent(entry.name, name)) return THERE
  if (!mayStore()) return OVER_QUOTA
  await requireSpace(services, entry.bytes)
  return storePicture(services, makePicture, name, () => readPhotoOfZip(entry))
}

interface FetchedPhoto extends PhotoPlace {
  readonly name: string
  readonly fetches: PhotoFetches
  mayFetch(): boolean
}

async function storeFetched(
  { services, signal }: ImportContext,
  makePicture: MakePicture,
  { name: oldName, personGuid, fetches, mayFetch, isPresent, mayStore }: FetchedPhoto,
): Promise<StoredPhoto> {
  const name = importedPhotoName(personGuid, oldName)
  if (await isPresent(oldName, name)) return THERE
  if (!PICTURE_ENDING.test(oldName) || !mayFetch()) return MISSING
  if (!mayStore()) return OVER_QUOTA
  await requireSpace(services, maxPhotoBytes(services))
  const bytes = await fetches.fetch(oldName, signal)
  if (bytes === undefined) return MISSING
  return storePicture(services, makePicture, name, async () => bytes)
}

async function storePicture(
  services: ImportContext['services'],
  makePicture: MakePicture,
  name: string,
  read: () => Promise<Buffer>,
): Promise<StoredPhoto> {
  try {
    const { files } = await makePicture(await read())
    const preparedPictures = await services.pictures.prepare(
      new Map([...files].map(([prefix, picture]) => [`${prefix}${name}`, picture])),
    )
    await preparedPictures.publish()
    const bytes = [...files.values()].reduce((sum, { length }) => sum + length, 0)
    return { outcome: 'imported', reason: null, bytes }
  } catch (error) {
    if (error instanceof Refusal) return UNUSABLE
    throw error
  }
}

const THERE: StoredPhoto = { outcome: 'already_there', reason: null, bytes: 0 }
const MISSING: StoredPhoto = { outcome: 'refused', reason: 'photo_file_missing', bytes: 0 }
const OVER_QUOTA: StoredPhoto = { outcome: 'refused', reason: 'over_quota', bytes: 0 }
const UNUSABLE: StoredPhoto = { outcome: 'refused', reason: 'photo_unusable', bytes: 0 }

/**
 * Lets the photos of the account point to the stored files; also photos that were imported before their files. `shouldAnnounce`: the account
 * has moved before, so that other pods know the old place, and get an entity of each public photo.
 */
export async function attachPhotos(
  context: ImportContext,
  importId: number,
  { shouldAnnounce }: { readonly shouldAnnounce: boolean },
): Promise<void> {
  const { services, user, signal } = context
  const { guid } = await Person.query(services.db).findById(user.personId).throwIfNotFound()
  for await (const names of listImportedPhotoNames(services.db, importId, PHOTO_BATCH_SIZE)) {
    signal.throwIfAborted()
    const placedPhotos: PlacedPhoto[] = []
    for (const oldName of names) {
      const name = importedPhotoName(guid, oldName)
      const bytes = await countBytes(context, name)
      if (bytes > 0) placedPhotos.push({ oldName, name, bytes }) // without its file, the photo is still on the old pod
    }
    await inRequestTransaction(services, async (transaction) => {
      const placedGuids = await placeImportedPhotos(transaction, user.personId, placedPhotos)
      if (!shouldAnnounce) return
      const jobs = placedGuids.map((photo) => newDispatchJob(user.personId, { record: 'photo', guid: photo }))
      await enqueueJobs(services, transaction, jobs)
    })
  }
}

/** Stores the photos that belong to no post, if their files are stored. Only archives of this software have them. */
export async function importPhotosWithoutPost(context: ImportContext, folder: string): Promise<void> {
  const { services, user, signal } = context
  const { guid: personGuid } = await Person.query(services.db).findById(user.personId).throwIfNotFound()
  for await (const { items } of spooledBatches(folder, 'photos')) {
    signal.throwIfAborted()
    const photos: UnplacedPhoto[] = []
    for (const { value } of items) {
      const read = readArchivedEntity(value, services.now())
      if (!read.ok || read.entity.type !== 'photo' || !isOwner(context, read.entity.author)) continue
      const { guid, remote_photo_name: oldName, created_at: createdAt, text = null, width, height } = read.entity
      const name = importedPhotoName(personGuid, oldName)
      const bytes = await countBytes(context, name)
      if (bytes === 0) continue
      photos.push({ guid, name, bytes, createdAt, text, width: width ?? null, height: height ?? null })
    }
    await inRequestTransaction(services, async (transaction) => {
      for (const photo of photos) await storeUnplacedPhoto(transaction, user.personId, photo)
    })
  }
}

/** Shows the picture of the archived profile, if its file was in the zip. */
export async function showProfilePicture(
  context: ImportContext,
  transaction: Knex.Transaction,
  profile: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { services, user } = context
  const { guid } = await Person.query(transaction).findById(user.personId).throwIfNotFound()
  const oldName = profilePictureName(profile)
  if (oldName === undefined) return
  const name = importedPhotoName(guid, oldName)
  const bytes = await countBytes(context, name)
  if (bytes === 0) return
  const photo = { name, bytes, guid: newGuid(), createdAt: services.now(), text: null, width: null, height: null }
  await insertUnplacedPhoto(transaction, user.personId, photo)
  const url = (prefix: string) => `${services.config.url}${UPLOADS_PATH}${prefix}${name}`
  await Person.updateProfile(transaction, user.personId, {
    imageUrl: url(PROFILE_PICTURE_PREFIX),
    imageUrlMedium: url(PHOTO_SIZE_PREFIXES.medium),
    imageUrlSmall: url(PHOTO_SIZE_PREFIXES.small),
  })
}

const PHOTO_BATCH_SIZE = 100

async function countBytes({ services }: ImportContext, name: string): Promise<number> {
  const storedFiles = await Promise.all(listPhotoFiles(name).map((file) => services.pictures.find(file)))
  return storedFiles.reduce((sum, each) => sum + (each?.bytes ?? 0), 0)
}
