import type { PictureStorage } from './picture-storage.js'

/** A store from which an isolated copy deletes nothing, because the folder or bucket may be that of the original pod. */
export function openKeptPictures(store: PictureStorage): PictureStorage {
  // The methods of a store do not use `this`.
  return {
    ...store,
    delete: async () => {},
    deleteUploads: async () => {},
    deleteOldUploads: async () => 0,
    deleteExports: async () => {},
  }
}
