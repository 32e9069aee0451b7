import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectFolder } from './assets.js'

/** What runs here, as its package says. */
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
