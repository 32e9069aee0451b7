import { constants, copyFile, link, lstat, mkdir, opendir, realpath, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode, messageOf } from '../../errors/thrown.js'
import type { ReportProgress } from '../../persistence/operations/progress.js'
import { imagesFolder } from '../../persistence/photos/picture-files.js'
import { TakeOverError } from '../take-over-error.js'
import { isPictureName, picturesFolder } from './pictures-folder.js'

export const UPLOADS_MODES = ['link', 'copy', 'in-place'] as const

export type UploadsMode = (typeof UPLOADS_MODES)[number]

export interface TakenFiles {
  readonly files: number
  /** Files that were not there before. */
  readonly added: number
}

/**
 * Brings the pictures of the old pod into the folder of this one, new names only: as hard links, which need no space, or as copies. A
 * symbolic link becomes a file. Nothing in the old folder is changed.
 */
export async function takeFiles(
  from: string,
  uploadsDir: string,
  {
    mode,
    signal,
    report,
  }: { readonly mode: UploadsMode; readonly signal: AbortSignal; readonly report: ReportProgress },
): Promise<TakenFiles> {
  const [source, target] = [picturesFolder(from), imagesFolder(uploadsDir)]
  const fileCounts = { files: 0, added: 0 }
  if (mode === 'in-place' && (await isSameFolder(source, target))) return fileCounts
  if (mode === 'in-place') {
    throw new TakeOverError(`With --uploads-mode in-place, UPLOADS_DIR must be the folder ${from}.`)
  }
  if (await isSameFolder(source, target)) {
    throw new TakeOverError(
      'The folder of --uploads is that of this pod: name another UPLOADS_DIR, or use --uploads-mode in-place.',
    )
  }
  await mkdir(target, { recursive: true, mode: 0o755 })
  const folder = await opendir(source).catch((cause: unknown) => {
    throw new TakeOverError(`The pictures in ${source} cannot be read (${messageOf(cause)}).`, { cause })
  })
  for await (const { name } of folder) {
    signal.throwIfAborted()
    if (!isPictureName(name)) continue
    const path = join(source, name)
    if (!(await stat(path).catch(() => undefined))?.isFile()) continue
    fileCounts.files += 1
    if (await linkOrCopyFile(path, join(target, name), mode)) fileCounts.added += 1
    report({ step: 'pictures', done: fileCounts.files, total: undefined })
  }
  return fileCounts
}

/** False: the file exists. A file of another size is left from an interrupted copy, and is replaced. */
async function linkOrCopyFile(path: string, target: string, mode: UploadsMode): Promise<boolean> {
  const [original, present] = [await stat(path), await lstat(target).catch(() => undefined)]
  if (present?.size === original.size) return false
  if (present !== undefined) await unlink(target)
  if (mode === 'link' && !(await lstat(path)).isSymbolicLink()) {
    try {
      await link(path, target)
      return true
    } catch (error) {
      // On another file system, or where the server forbids links to files of others.
      if (!hasCode(error, 'EXDEV') && !hasCode(error, 'EPERM') && !hasCode(error, 'EMLINK')) throw error
    }
  }
  await copyFile(path, target, constants.COPYFILE_FICLONE)
  return true
}

async function isSameFolder(path: string, otherPath: string): Promise<boolean> {
  const paths = await Promise.all([path, otherPath].map((name) => realpath(name).catch(() => name)))
  return paths[0] === paths[1]
}
