import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface Asset {
  readonly bytes: Buffer
  readonly etag: string
}

/** The compiler copies nothing, so both the sources and what is compiled from them read the file among the sources. */
export async function readAsset(name: string): Promise<Asset> {
  const bytes = await readFile(join(projectFolder(import.meta.dirname), 'src/web/assets', name))
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
}

export function projectFolder(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder
  if (dirname(folder) === folder)
    throw new Error('The files of the pod must stay below the folder of its package.json.')
  return projectFolder(dirname(folder))
}
