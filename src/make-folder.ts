import { existsSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { hasCode } from './thrown.js'

/**
 * Makes a folder and those above it. Node's own `recursive` never returns, and cannot be stopped, where a folder exists and
 * nothing can be made in it, as in /proc.
 */
export async function makeFolder(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (await isFolder(path)) return
    if (!hasCode(error, 'ENOENT') || existsSync(dirname(path))) throw error
    await makeFolder(dirname(path), mode)
    await makeFolder(path, mode)
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}
