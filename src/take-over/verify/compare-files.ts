import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/config.js'
import { imagesFolder } from '../../persistence/photos/picture-files.js'
import { isPictureName, picturesFolder } from '../uploads/pictures-folder.js'
import type { Difference } from './verify-target.js'

/** Minimum number of files that are compared byte by byte; otherwise one of a hundred. */
const COMPARED_AT_LEAST = 1_000
const ONE_OF = 100
const EXAMPLES = 20

interface CompareFilesOptions {
  /** Files that the running old pod has written later are not here yet. */
  readonly writtenBefore: Date
  readonly signal: AbortSignal
}

/** Compares the sizes of all pictures with those of the old pod, and the content of some. */
export async function compareFiles(
  uploads: string,
  { uploadsDir }: Pick<Config, 'uploadsDir'>,
  { writtenBefore, signal }: CompareFilesOptions,
): Promise<{ readonly files: number; readonly differences: readonly Difference[] }> {
  const [source, target] = [picturesFolder(uploads), imagesFolder(uploadsDir)]
  let all = 0
  for await (const _entry of await opendir(source)) all += 1
  const step = Math.min(ONE_OF, Math.max(1, Math.floor(all / COMPARED_AT_LEAST)))
  const differentFiles: string[] = []
  let files = 0
  for await (const { name } of await opendir(source)) {
    signal.throwIfAborted()
    if (!isPictureName(name)) continue
    const original = await stat(join(source, name)).catch(() => undefined)
    if (!original?.isFile() || original.mtime >= writtenBefore) continue
    files += 1
    const copy = await stat(join(target, name)).catch(() => undefined)
    const isLink = copy?.ino === original.ino && copy.dev === original.dev
    if (isLink) continue
    const isEqual =
      copy?.size === original.size &&
      (files % step !== 0 || (await hashOf(join(source, name))) === (await hashOf(join(target, name))))
    if (!isEqual) differentFiles.push(name)
  }
  const differences =
    differentFiles.length === 0
      ? []
      : [
          {
            check: 'pictures',
            detail: `${differentFiles.length} files differ`,
            examples: differentFiles.slice(0, EXAMPLES),
          },
        ]
  return { files, differences }
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}
