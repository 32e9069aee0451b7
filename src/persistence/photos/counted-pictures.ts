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
  const counted =
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
    storeUpload: counted('write', storage.storeUpload),
    readUploadStart: counted('read', storage.readUploadStart),
    readUpload: counted('read', storage.readUpload),
    deleteUploads: counted('delete', storage.deleteUploads),
    deleteOldUploads: counted('delete', storage.deleteOldUploads),
    async prepare(pictures) {
      const prepared = await counted('write', storage.prepare)(pictures)
      return { publish: counted('write', prepared.publish), discard: counted('delete', prepared.discard) }
    },
    write: counted('write', storage.write),
    read: counted('read', storage.read),
    find: counted('read', storage.find),
    open: counted('read', storage.open),
    delete: counted('delete', storage.delete),
    list: counted('list', storage.list),
    storeExport: counted('write', storage.storeExport),
    openExport: counted('read', storage.openExport),
    deleteExports: counted('delete', storage.deleteExports),
  }
}

/** A client that ends its upload, or a file that is not there, is not a failure of the store. */
function isFailureOfStore(error: unknown): boolean {
  if (error instanceof StorageUnavailable) return true
  return error instanceof Error && 'syscall' in error && 'code' in error && error.code !== 'ENOENT'
}
