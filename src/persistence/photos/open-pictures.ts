import { openS3Client, type S3Settings } from '../s3/s3-client.js'
import { openFolderPictures } from './folder-pictures.js'
import { openKeptPictures } from './kept-pictures.js'
import { openMovingPictures } from './moving-pictures.js'
import type { PictureStorage } from './picture-storage.js'
import { openS3Pictures } from './s3-pictures.js'

export interface StorageSettings {
  readonly uploadsDir: string
  readonly storage: PictureStorage['kind']
  /** The store from which pictures are being moved. */
  readonly uploadsFallback: PictureStorage['kind'] | undefined
  readonly s3: S3Settings | undefined
  /** The pod is a copy: nothing is deleted from its stores. */
  readonly isolated: boolean
}

/** Which stores a process uses. All processes of a pod and its commands must use the same. */
export interface PictureStores {
  readonly store: PictureStorage['kind']
  readonly fallback: PictureStorage['kind'] | null
  /** Address of the bucket without keys; null: none is used. A folder may have another path in each process. */
  readonly bucket: string | null
}

export function listPictureStores({ storage, uploadsFallback, s3 }: StorageSettings): PictureStores {
  const isS3Used = storage === 's3' || uploadsFallback === 's3'
  const bucket = isS3Used && s3 !== undefined ? `${s3.endpoint ?? s3.region}/${s3.bucket}/${s3.prefix}` : null
  return { store: storage, fallback: uploadsFallback ?? null, bucket }
}

/** Opens the store of the settings; while pictures move, together with the former one. */
export function openPictureStorage(settings: StorageSettings): PictureStorage {
  const { storage, uploadsFallback } = settings
  const target = openPictureStorageOfKind(settings, storage)
  if (uploadsFallback === undefined || uploadsFallback === storage) return target
  return openMovingPictures(target, openPictureStorageOfKind(settings, uploadsFallback))
}

/** Opens one store, whichever the settings use. */
export function openPictureStorageOfKind(
  { uploadsDir, s3, isolated }: StorageSettings,
  kind: PictureStorage['kind'],
): PictureStorage {
  const pictures = kind === 'folder' ? openFolderPictures(uploadsDir) : openS3Pictures(openS3Client(requireS3(s3)))
  return isolated ? openKeptPictures(pictures) : pictures
}

function requireS3(s3: S3Settings | undefined): S3Settings {
  if (s3 === undefined) throw new Error('The settings name no S3 store.')
  return s3
}
