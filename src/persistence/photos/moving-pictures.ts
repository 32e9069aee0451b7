import type { PictureStorage } from './picture-storage.js'

/** Storage while pictures move from one store to another: writes to the new one, reads from both, deletes in both. */
export function openMovingPictures(target: PictureStorage, source: PictureStorage): PictureStorage {
  /** The target is read again, because a picture may move between the first two reads. */
  async function inEither<Found>(
    read: (store: PictureStorage) => Promise<Found | undefined>,
  ): Promise<Found | undefined> {
    return (await read(target)) ?? (await read(source)) ?? read(target)
  }

  return {
    ...target,
    async check() {
      await target.check()
      await source.check()
    },
    async readUpload(file) {
      return target.readUpload(file).catch((error: unknown) =>
        source.readUpload(file).catch(() => {
          throw error
        }),
      )
    },
    async readUploadStart(file, length) {
      const start = await target.readUploadStart(file, length).catch(() => undefined)
      return start === undefined || start.length === 0 ? source.readUploadStart(file, length) : start
    },
    async deleteUploads(files) {
      const allFiles = [...files]
      await target.deleteUploads(allFiles)
      await source.deleteUploads(allFiles)
    },
    async deleteOldUploads(before) {
      return (await target.deleteOldUploads(before)) + (await source.deleteOldUploads(before))
    },
    read: (name) => inEither((store) => store.read(name)),
    find: (name) => inEither((store) => store.find(name)),
    open: (name, range) => inEither((store) => store.open(name, range)),
    openExport: (name, range) => inEither((store) => store.openExport(name, range)),
    async deleteExports(names) {
      await target.deleteExports(names)
      await source.deleteExports(names)
    },
    // The source first: a copy that runs in the meantime must not find it there and write it again.
    async delete(names) {
      await source.delete(names)
      await target.delete(names)
    },
  }
}
