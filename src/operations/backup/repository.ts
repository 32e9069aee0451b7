import { BackupError } from './backup-error.js'
import { openFolderRepository } from './folder-repository.js'

/** The place that holds backups. Paths have slashes. */
export interface Repository {
  /** For messages. */
  readonly place: string
  /** Writes a file completely or not at all. */
  write(path: string, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>
  /** Fails with a BackupError if the file is missing. */
  read(path: string): AsyncIterable<Buffer>
  /** Undefined: there is no such file. */
  size(path: string): Promise<number | undefined>
  /** The names in a folder, in order. */
  list(folder: string): Promise<readonly string[]>
  /** Removes a file or a folder with its content. */
  remove(path: string): Promise<void>
}

/** Opens the target of a command or setting. */
export function openRepository(target: string): Repository {
  if (/^[a-z0-9+]+:\/\//i.test(target)) {
    throw new BackupError(
      `Backups cannot be stored in ${target.replace(/:\/\/.*/s, '://…')}: give the path of a folder.`,
    )
  }
  return openFolderRepository(target)
}
