import { constants, type FileHandle, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { makeFolder } from '../../config/make-folder.js'
import { hasCode } from '../../errors/thrown.js'
import {
  checkUploadsFolder,
  deleteOldUploads,
  deletePictures,
  deleteUploads,
  imagesFolder,
  publishDrafts,
  readUpload,
  readUploadStart,
  spoolFolder,
  storeUpload,
  writeDraft,
} from './picture-files.js'
import type { PictureFileInfo, PictureStorage } from './picture-storage.js'

const LIST_BATCH_SIZE = 500

/** Pictures in a folder that web and worker processes share. */
export function openFolderPictures(uploadsDir: string): PictureStorage {
  const folder = imagesFolder(uploadsDir)
  const exports = join(uploadsDir, 'exports')
  return {
    kind: 'folder',
    maxExportBytes: Number.POSITIVE_INFINITY,
    check: () => checkUploadsFolder(uploadsDir),
    storeUpload: (bytes, signal) => storeUpload(uploadsDir, bytes, signal),
    readUploadStart: (file, length) => readUploadStart(uploadsDir, file, length),
    readUpload: (file) => readUpload(uploadsDir, file),
    deleteUploads: (files) => deleteUploads(uploadsDir, files),
    deleteOldUploads: (before) => deleteOldUploads(uploadsDir, before),

    async prepare(pictures) {
      const drafts = new Map<string, string>()
      const discard = () => deleteUploads(uploadsDir, drafts.values())
      try {
        for (const [name, bytes] of pictures) drafts.set(name, await writeDraft(uploadsDir, bytes))
      } catch (error) {
        await discard()
        throw error
      }
      return { publish: () => publishDrafts(uploadsDir, drafts), discard }
    },
    // Written as a draft first: another process may serve the picture as soon as its name exists.
    async write(name, bytes) {
      await makeFolder(spoolFolder(uploadsDir), 0o700)
      await publishDrafts(uploadsDir, new Map([[name, await writeDraft(uploadsDir, bytes)]]))
    },
    async read(name) {
      return readFile(join(folder, name)).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT')) return undefined
        throw error
      })
    },
    find: async (name) => withFile(join(folder, name), async (_handle, file) => file),
    open: (name, range) =>
      withFile<Readable>(
        join(folder, name),
        async (handle) => handle.createReadStream(range ?? {}),
        'the stream closes it',
      ),
    delete: (names) => deletePictures(uploadsDir, names),
    async list(after) {
      const names = await readdir(folder).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT')) return []
        throw error
      })
      const next = names
        .filter((name) => name > after)
        .sort()
        .slice(0, LIST_BATCH_SIZE)
      const fileStats = await Promise.all(next.map((name) => stat(join(folder, name)).catch(() => undefined)))
      return next.flatMap((name, index) => {
        const { size: bytes, mtime: modifiedAt } = fileStats[index] ?? {}
        return bytes === undefined || modifiedAt === undefined ? [] : [{ name, bytes, modifiedAt }]
      })
    },

    async exportDraft(name) {
      await makeFolder(exports, 0o700)
      return join(exports, `${name}.draft`)
    },
    storeExport: (name, { path }) => rename(path, join(exports, name)),
    openExport: (name, range) =>
      withFile<Readable>(
        join(exports, name),
        async (handle) => handle.createReadStream(range ?? {}),
        'the stream closes it',
      ),
    async deleteExports(names) {
      for (const name of names) {
        for (const file of [name, `${name}.draft`]) await rm(join(exports, file), { force: true })
      }
    },
  }
}

/** Opens only regular files: a symbolic link could lead outside of the folder. */
async function withFile<Result>(
  path: string,
  use: (handle: FileHandle, file: PictureFileInfo) => Promise<Result>,
  closing: 'now' | 'the stream closes it' = 'now',
): Promise<Result | undefined> {
  let handle: FileHandle
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch {
    return undefined
  }
  const { size, mtimeMs, ...stats } = await handle.stat()
  const isFile = (stats.mode & constants.S_IFMT) === constants.S_IFREG
  if (!isFile) {
    await handle.close()
    return undefined
  }
  const etag = `"${size.toString(16)}-${Math.floor(mtimeMs).toString(16)}"`
  const result = await use(handle, { bytes: size, etag })
  if (closing === 'now') await handle.close()
  return result
}
