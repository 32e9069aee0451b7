import { randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { chown, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { makeFolder } from '../../../config/make-folder.js'
import { hasCode, messageOf } from '../../../errors/thrown.js'
import { BackupError } from '../backup-error.js'
import type { Repository } from './repository.js'

/** A repository in a folder. Only its owner can read the files. */
export function openFolderRepository(folder: string): Repository {
  const root = resolve(folder)
  const at = (path: string) => join(root, path)

  return {
    place: root,

    async write(path, bytes) {
      const draft = at(`${path}.${randomBytes(4).toString('hex')}.part`)
      try {
        await makeFolder(dirname(draft), 0o700)
        await pipeline(bytes, createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true }))
        await giveToOwner(root, draft)
        await rename(draft, at(path))
        await flushFolder(dirname(draft))
      } catch (error) {
        await rm(draft, { force: true }).catch(() => undefined)
        if (hasCode(error, 'ENOSPC', 'EDQUOT')) {
          throw new BackupError(
            `The backup cannot be written to ${root}, because the disk is full: free some space, or remove old backups with "pod backup forget".`,
          )
        }
        if (isFileError(error)) {
          throw new BackupError(
            `The backup cannot be written to ${root} (${messageOf(error)}): the user of the pod needs the folder, and its systemd service ReadWritePaths=${root}.`,
          )
        }
        throw error
      }
    },

    async *read(path) {
      try {
        yield* createReadStream(at(path), { highWaterMark: 256 * 1024 })
      } catch (error) {
        if (hasCode(error, 'ENOENT')) throw new BackupError(`${path} is missing in ${root}.`)
        if (isFileError(error)) throw new BackupError(`${path} cannot be read in ${root} (${messageOf(error)}).`)
        throw error
      }
    },

    async size(path) {
      try {
        const fileStats = await stat(at(path))
        return fileStats.isFile() ? fileStats.size : undefined
      } catch (error) {
        if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
        throw error
      }
    },

    async list(path) {
      try {
        return (await readdir(at(path))).sort()
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return []
        throw new BackupError(`Backups cannot be read in ${root} (${messageOf(error)}).`)
      }
    },

    remove: (path) => rm(at(path), { recursive: true, force: true }),
  }
}

/** Root may verify or make a backup in the folder of the pod, whose user must be able to read and remove these files. */
async function giveToOwner(root: string, draft: string): Promise<void> {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = await stat(root)
  if (uid === 0) return
  for (let path = draft; path !== root; path = dirname(path)) await chown(path, uid, gid)
}

async function flushFolder(path: string): Promise<void> {
  const handle = await open(path)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}
