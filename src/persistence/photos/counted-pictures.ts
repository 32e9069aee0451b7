import { StorageUnavailable } from '../s3/storage-unavailable.js'
import type { PictureStorage } from './picture-storage.js'

/** The operation of the store that failed. */
type StorageOperation = 'read' | 'write' | 'delete' | 'list'

/** Pictures whose store counts its failures. */
export interface CountedPictures extends PictureStorage {
  /** Failures since the process started. */
  readonly failures: ReadonlyMap<StorageOperation, number>
}

/** Counts the failures of a store: requests to S3 that failed, and errors of the disk. */
export function countFailures(storage: PictureStorage): CountedPictures {
  const failures = new Map<StorageOperation, number>()
  const countRequests =
    <Input extends unknown[], Result>(operation: StorageOperation, run: (...input: Input) => Promise<Result>) =>
    async (...input: Input): Promise<Result> => {
      try {
        return await run.apply(storage, input)
      } catch (error) {
        if (isFailureOfStore(error)) failures.set(operation, (failures.get(operation) ?? 0) + 1)
        throw error
      }
    }
  return {
    ...storage,
    failures,
    storeUpload: countRequests('write', storage.storeUpload),
    readUploadStart: countRequests('read', storage.readUploadStart),
    readUpload: countRequests('read', storage.readUpload),
    deleteUploads: countRequests('delete', storage.deleteUploads),
    deleteOldUploads: countRequests('delete', storage.deleteOldUploads),
    async prepare(pictures) {
      const preparedPictures = await countRequests('write', storage.prepare)(pictures)
      return {
        publish: countRequests('write', preparedPictures.publish),
        discard: countRequests('delete', preparedPictures.discard),
      }
    },
    write: countRequests('write', storage.write),
    read: countRequests('read', storage.read),
    find: countRequests('read', storage.find),
    open: countRequests('read', storage.open),
    delete: countRequests('delete', storage.delete),
    list: countRequests('list', storage.list),
    storeExport: countRequests('write', storage.storeExport),
    openExport: countRequests('read', storage.openExport),
    deleteExports: countRequests('delete', storage.deleteExports),
    ...(storage.linkTo && { linkTo: countRequests('read', storage.linkTo) }),
  }
}

/** A client that ends its upload, or a file that is not there, is not a failure of the store. */
function isFailureOfStore(error: unknown): boolean {
  if (error instanceof StorageUnavailable) return true
  return error instanceof Error && 'syscall' in error && 'code' in error && error.code !== 'ENOENT'
}
