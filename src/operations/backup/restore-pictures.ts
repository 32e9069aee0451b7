import type pg from 'pg'
import { listPhotoFiles } from '../../domain/photos/photos.js'
import { listStoredPhotos } from '../../persistence/operations/snapshots/snapshot-content.js'
import type { PictureStorage } from '../../persistence/photos/picture-storage.js'
import { BackupError } from './backup-error.js'
import { decryptWith } from './encryption.js'
import type { Manifest } from './manifest.js'
import { readStored } from './parts.js'
import { type PictureEntry, picturePath, previousPictures, readPictureList } from './pictures.js'
import type { RestoreOptions } from './restore-backup.js'

const PHOTO_BATCH_SIZE = 500

/** Writes the pictures of all photos whose files are on the pod. A picture that is lost in the repository is counted and left out. */
export async function restorePictures(
  session: pg.Client,
  manifest: Manifest,
  storage: Pick<PictureStorage, 'write'>,
  options: RestoreOptions,
): Promise<{ readonly pictures: number; readonly lost: number }> {
  if (manifest.pictures.referenced) return { pictures: 0, lost: 0 }
  const { repository, report, signal } = options
  const entriesOfPhoto = previousPictures(readPictureList(repository.read(manifest.pictures.path)))
  const hasMovedFiles = manifest.tables.some((table) => table.name === 'moved_photo_files')
  let pictures = 0
  let lostPictures = 0
  const listPhotos = (after: number) => listStoredPhotos(session, { after, limit: PHOTO_BATCH_SIZE, hasMovedFiles })
  for (let photos = await listPhotos(0); photos.length > 0; ) {
    for (const { id, name } of photos) {
      signal.throwIfAborted()
      const entries = await entriesOfPhoto(id)
      for (const file of listPhotoFiles(name)) {
        const path = picturePath(file, manifest.recipients)
        const entry = entries.find((pictureEntry) => pictureEntry.path === path)
        if (entry === undefined) continue
        const content = await readPicture(entry, manifest, options)
        if (content === undefined) lostPictures += 1
        else await storage.write(file, content)
        pictures += content === undefined ? 0 : 1
        report({ step: 'pictures', done: pictures, total: manifest.pictures.count })
      }
    }
    photos = await listPhotos(photos.at(-1)?.id ?? 0)
  }
  return { pictures, lost: lostPictures }
}

async function readPicture(
  picture: PictureEntry,
  { recipients }: Manifest,
  { repository, identities, signal }: RestoreOptions,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  try {
    const decrypt = decryptWith(recipients.length === 0 ? undefined : identities)
    for await (const chunk of decrypt(readStored(repository, picture, signal))) chunks.push(chunk)
    return Buffer.concat(chunks)
  } catch (error) {
    if (error instanceof BackupError) return undefined
    throw error
  }
}
