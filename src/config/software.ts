import { existsSync, readFileSync, statSync } from 'node:fs'
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

/** The commit of a release, or of the repository that the program runs from; undefined: unknown. */
export function readCommit(): string | undefined {
  const folder = projectFolder(import.meta.dirname)
  const { gitHead } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (typeof gitHead === 'string' && gitHead !== '') return gitHead
  try {
    return readHead(join(folder, '.git'))
  } catch {
    return undefined
  }
}

/** The commit of HEAD. In a worktree `.git` is a file that names the folder. */
function readHead(path: string): string | undefined {
  const folder = statSync(path).isFile() ? readLine(path).replace(/^gitdir: /, '') : path
  const head = readLine(join(folder, 'HEAD'))
  if (!head.startsWith('ref: ')) return head
  const reference = head.slice('ref: '.length)
  const common = existsSync(join(folder, 'commondir')) ? join(folder, readLine(join(folder, 'commondir'))) : folder
  if (existsSync(join(common, reference))) return readLine(join(common, reference))
  const packedRefs = readFileSync(join(common, 'packed-refs'), 'utf8').split('\n')
  return packedRefs.find((line) => line.endsWith(` ${reference}`))?.split(' ')[0]
}

function readLine(path: string): string {
  return readFileSync(path, 'utf8').trim()
}

/** The folder of package.json, found from any source or compiled file below it. */
export function projectFolder(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder
  if (dirname(folder) === folder)
    throw new Error('The files of the pod must stay below the folder of its package.json.')
  return projectFolder(dirname(folder))
}
