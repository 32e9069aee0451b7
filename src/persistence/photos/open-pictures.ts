import { openS3Client, type S3Settings } from '../s3/s3-client.js'
import { openFolderPictures } from './folder-pictures.js'
import { openMovingPictures } from './moving-pictures.js'
import type { PictureStorage } from './picture-storage.js'
import { openS3Pictures } from './s3-pictures.js'

export interface StorageSettings {
  readonly uploadsDir: string
  readonly storage: PictureStorage['kind']
  /** The store from which pictures are being moved. */
  readonly uploadsFallback: PictureStorage['kind'] | undefined
  readonly s3: S3Settings | undefined
}

/** Opens the store of the settings; while pictures move, together with the one before. */
export function openPictureStorage(settings: StorageSettings): PictureStorage {
  const { storage, uploadsFallback } = settings
  const target = openPicturesOf(settings, storage)
  if (uploadsFallback === undefined || uploadsFallback === storage) return target
  return openMovingPictures(target, openPicturesOf(settings, uploadsFallback))
}

/** Opens one store, whichever the settings use. */
export function openPicturesOf({ uploadsDir, s3 }: StorageSettings, kind: PictureStorage['kind']): PictureStorage {
  if (kind === 'folder') return openFolderPictures(uploadsDir)
  if (s3 === undefined) throw new Error('The settings name no S3 store.')
  return openS3Pictures(openS3Client(s3))
}
