import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { projectFolder } from '../../config/software.js'

export interface Asset {
  readonly bytes: Buffer
  readonly etag: string
}

/** Reads a file from the folder of sources, even in compiled code, because the compiler does not copy assets. */
export async function readAsset(name: string): Promise<Asset> {
  const bytes = await readFile(join(projectFolder(import.meta.dirname), 'src/web/assets', name))
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
}
