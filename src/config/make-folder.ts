import { existsSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { hasCode } from '../errors/thrown.js'

/**
 * Creates a folder and its missing parents. Node's `recursive` option never returns if a parent exists but nothing can be created
 * in it, as in /proc.
 */
export async function makeFolder(path: string, mode: number): Promise<void> {
  try {
    await makeOne(path, mode)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
    if (!existsSync(dirname(path))) await makeFolder(dirname(path), mode)
    await makeOne(path, mode) // another process may have made the parent in the meantime
  }
}

async function makeOne(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (!(await isFolder(path))) throw error
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}
