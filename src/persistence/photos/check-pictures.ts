import { StartError } from '../../errors/start-error.js'
import { StorageUnavailable } from '../s3/storage-unavailable.js'
import { openPictureStorage, type StorageSettings } from './open-pictures.js'

/**
 * Fails with a StartError if pictures cannot be stored with these settings. An S3 store that does not answer must not stop a process
 * that starts meanwhile, because everything but pictures works: its error is returned.
 */
export async function checkPicturesAtStart(settings: StorageSettings): Promise<StorageUnavailable | undefined> {
  try {
    await openPictureStorage(settings).check()
    return undefined
  } catch (error) {
    const cause = error instanceof StartError ? error.cause : undefined
    if (cause instanceof StorageUnavailable && !cause.isRefused) return cause
    throw error
  }
}
