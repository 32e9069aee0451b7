import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { projectFolder } from '../../config/software.js'

export interface Asset {
  readonly bytes: Buffer
  readonly etag: string
}

/** The compiler copies nothing, so both the sources and what is compiled from them read the file among the sources. */
export async function readAsset(name: string): Promise<Asset> {
  const bytes = await readFile(join(projectFolder(import.meta.dirname), 'src/web/assets', name))
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
}
