import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chown,
  lstat,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hasCode, messageOf } from '../src/errors/thrown.js'
import { type Binaries, programPath, readMajorVersion } from './binaries.js'
import { EmbeddedPostgresError } from './errors.js'
import { ownerFor, type RunAs, run } from './run-as.js'

/** The data directory of PostgreSQL and the password of its superuser. */
export interface Cluster {
  readonly folder: string
  readonly password: string
}

/** PostgreSQL never lets the role that `initdb` makes stop being a superuser. Only the launcher uses it, see roles.ts. */
export const SUPERUSER = 'pod'

const CLUSTER = 'postgres'
/** Inside the cluster, so that both are created, moved and deleted together. */
const PASSWORD = 'pod.password'
const INITDB_LIMIT_MS = 120_000

/** The cluster of this data folder, if it has been made. */
export async function findPostgresCluster(dataDir: string): Promise<Cluster | undefined> {
  const path = join(dataDir, CLUSTER)
  try {
    if ((await readdir(path)).length === 0) return undefined
    const folder = await realpath(path)
    return { folder, password: await readFile(join(folder, PASSWORD), 'utf8') }
  } catch (error) {
    if (hasCode(error, 'ENOENT') && (await isMissing(path))) return undefined
    if (hasCode(error, 'EACCES', 'EPERM')) {
      throw new EmbeddedPostgresError(
        `The database in ${path} belongs to another user: run this as the user who starts the pod, or set another DATA_DIR.`,
        { cause: error },
      )
    }
    throw new EmbeddedPostgresError(
      `${path} is not a database of this pod (${messageOf(error)}): move it away and start again for an empty pod, or put a backup in its place.`,
      { cause: error },
    )
  }
}

/** True if a pod has made its database in this folder. */
export async function hasCluster(dataDir: string): Promise<boolean> {
  return !(await isMissing(join(dataDir, CLUSTER, 'PG_VERSION')))
}

/** Makes the cluster under a temporary name and renames it, so that an interrupted start leaves no partial cluster. */
export async function createCluster(
  place: { readonly dataDir: string; readonly home: string },
  binaries: Binaries,
  runAs: RunAs,
  options: { readonly fast: boolean },
): Promise<void> {
  const draft = join(place.home, `${CLUSTER}.new-${randomBytes(4).toString('hex')}`)
  const passwordFile = join(draft, 'password')
  const folder = join(draft, 'data')
  const owner = ownerFor(runAs)
  try {
    await mkdir(draft, { mode: 0o700 })
    await writeFile(passwordFile, randomBytes(24).toString('base64url'), { mode: 0o600, flush: true })
    if (owner) for (const path of [draft, passwordFile]) await chown(path, owner.uid, owner.gid)
    await run(
      runAs,
      programPath(binaries, 'initdb'),
      initdbArguments(folder, passwordFile, options.fast),
      INITDB_LIMIT_MS,
    )
    await rename(passwordFile, join(folder, PASSWORD))
    await rename(folder, join(place.home, CLUSTER))
  } catch (error) {
    await rm(draft, { recursive: true, force: true, maxRetries: 3 })
    // Another process may have made the cluster first; then that one is used.
    if (await isMissing(join(place.home, CLUSTER, 'PG_VERSION'))) {
      throw new EmbeddedPostgresError(
        `The database cannot be created in ${place.home} (${complaintOf(error)}): set another DATA_DIR, or DATABASE_URL to a PostgreSQL server of your own.`,
        { cause: error },
      )
    }
  }
  await sweepDrafts(place.home)
  if (place.home !== place.dataDir) await linkCluster(place)
}

/** Throws if another major version of PostgreSQL made the data; PostgreSQL would report it only in its log. */
export async function checkVersion(cluster: Cluster, binaries: Binaries): Promise<void> {
  const version = (await readFile(join(cluster.folder, 'PG_VERSION'), 'utf8').catch(() => 'unknown')).trim()
  if (version === readMajorVersion(binaries)) return
  throw new EmbeddedPostgresError(
    `The database in ${cluster.folder} was made by PostgreSQL ${version}, and this pod brings PostgreSQL ${readMajorVersion(binaries)}: ` +
      'start it with the version of the pod that made it and move the data from there, or set DATABASE_URL or another DATA_DIR.',
  )
}

/** Changes the owner of the files. Only root may have run PostgreSQL as another user, and only root may chown. */
export async function changeClusterOwner(cluster: Cluster, runAs: RunAs): Promise<void> {
  const owner = ownerFor(runAs)
  if (owner === undefined || (await stat(cluster.folder)).uid === owner.uid) return
  await promisify(execFile)('chown', ['-R', `${owner.uid}:${owner.gid}`, cluster.folder])
}

function initdbArguments(folder: string, passwordFile: string, isFast: boolean): readonly string[] {
  return [
    `--pgdata=${folder}`,
    `--username=${SUPERUSER}`,
    '--auth=scram-sha-256',
    `--pwfile=${passwordFile}`,
    '--encoding=UTF8',
    // The built-in locale: the same sorting and case folding on every machine.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--data-checksums',
    '--no-instructions',
    ...(isFast ? ['--no-sync'] : []),
  ]
}

/** Removes drafts of interrupted starts. A concurrent start fails and then uses the finished cluster. */
async function sweepDrafts(home: string): Promise<void> {
  const drafts = (await readdir(home)).filter((name) => name.startsWith(`${CLUSTER}.new-`))
  await Promise.all(drafts.map((name) => rm(join(home, name), { recursive: true, force: true, maxRetries: 3 })))
}

async function linkCluster(place: { readonly dataDir: string; readonly home: string }): Promise<void> {
  try {
    await symlink(join(place.home, CLUSTER), join(place.dataDir, CLUSTER))
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

async function isMissing(path: string): Promise<boolean> {
  return lstat(path).then(
    () => false,
    (error: unknown) => hasCode(error, 'ENOENT', 'ENOTDIR'),
  )
}

/** The last error line of `initdb`, or the error of running it. */
function complaintOf(error: unknown): string {
  const output = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const complaint =
    lines.findLast((line) => /error|fatal/i.test(line)) ?? lines.at(-1) ?? messageOf(error).split('\n')[0]
  return (complaint ?? '').replace(/^initdb: (error: )?/, '').trim()
}
