import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Name and version of the pod's software, from package.json. */
export interface Software {
  readonly name: string
  readonly version: string
  readonly repository?: string
  readonly homepage?: string
}

export function readSoftware(): Software {
  const { name, version, repository, homepage } = JSON.parse(
    readFileSync(join(projectFolder(import.meta.dirname), 'package.json'), 'utf8'),
  )
  const url: unknown = typeof repository === 'object' ? repository?.url : repository
  return {
    name,
    version,
    ...(typeof url === 'string' && { repository: url }),
    ...(typeof homepage === 'string' && { homepage }),
  }
}

/** The folder of package.json, found from any source or compiled file below it. */
export function projectFolder(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder
  if (dirname(folder) === folder)
    throw new Error('The files of the pod must stay below the folder of its package.json.')
  return projectFolder(dirname(folder))
}
