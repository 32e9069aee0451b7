import { BackupError } from './backup-error.js'
import { listBackups } from './list-backups.js'
import { type Manifest, removeBackup } from './manifest.js'
import { readPictureList } from './pictures.js'
import type { Repository } from './repositories/repository.js'
import { chooseRetained, type Retention } from './retention.js'

export interface DeletedBackups {
  /** Ids, the oldest first. */
  readonly kept: readonly string[]
  readonly deleted: readonly string[]
  /** The number of pictures that no remaining backup contains. */
  readonly pictures: number
}

interface DeleteOptions {
  /** Removes nothing, and returns what would be removed. */
  readonly dryRun: boolean
  readonly signal: AbortSignal
}

const FIRST_DIGITS = '0123456789abcdef'

/** Removes old backups, and the pictures that only they have. The newest complete backup always stays. */
export async function deleteBackups(
  repository: Repository,
  retention: Retention,
  { dryRun, signal }: DeleteOptions,
): Promise<DeletedBackups> {
  const refuse = (error: BackupError) => {
    throw new BackupError(`No backup is removed: ${error.message} Remove the folder of this backup.`)
  }
  const backups = (await listBackups(repository, refuse)).map(({ manifest, complete }) => ({
    manifest,
    complete,
    startedAt: new Date(manifest.started_at),
  }))
  // A damaged backup must not replace an intact one.
  const retainedBackups = chooseRetained(
    backups.filter(({ complete }) => complete),
    retention,
  )
  const deletedBackups = backups.filter((backup) => backup.complete && !retainedBackups.has(backup))
  const remainingManifests = backups
    .filter((backup) => !deletedBackups.includes(backup))
    .map(({ manifest }) => manifest)

  const ids = deletedBackups.map(({ manifest }) => manifest.id).sort()
  if (!dryRun) {
    for (const id of ids) {
      signal.throwIfAborted()
      await removeBackup(repository, id)
    }
  }
  const pictures = await removePictures(repository, remainingManifests, { dryRun, signal })
  return { kept: remainingManifests.map(({ id }) => id).sort(), deleted: ids, pictures }
}

/** Reads all lists once for each first digit of the paths: the paths of all pictures may not fit into memory. */
async function removePictures(
  repository: Repository,
  remaining: readonly Manifest[],
  { dryRun, signal }: DeleteOptions,
): Promise<number> {
  if (remaining.length === 0) return 0
  await refuseUnknownLists(repository, remaining)
  const folders = await repository.list('pictures')
  let removedPictures = 0
  for (const digit of FIRST_DIGITS) {
    const ofDigit = folders.filter((folder) => folder.startsWith(digit))
    if (ofDigit.length === 0) continue
    const namedPaths = await namedPictures(repository, remaining, `pictures/${digit}`)
    for (const folder of ofDigit) {
      for (const name of await repository.list(`pictures/${folder}`)) {
        signal.throwIfAborted()
        const path = `pictures/${folder}/${name}`
        if (namedPaths.has(path)) continue
        if (!dryRun) await repository.remove(path)
        removedPictures += 1
      }
    }
  }
  return removedPictures
}

/** A list that is damaged does not name all pictures of its backup. */
async function refuseUnknownLists(repository: Repository, remaining: readonly Manifest[]): Promise<void> {
  for (const { id, pictures } of remaining) {
    if ((await repository.size(pictures.path)) === pictures.size) continue
    throw new BackupError(`Backup ${id} has no complete list of pictures, so no picture is removed: remove its folder.`)
  }
}

async function namedPictures(
  repository: Repository,
  remaining: readonly Manifest[],
  prefix: string,
): Promise<ReadonlySet<string>> {
  const namedPaths = new Set<string>()
  for (const { pictures } of remaining) {
    for await (const { path } of readPictureList(repository.read(pictures.path))) {
      if (path.startsWith(prefix)) namedPaths.add(path)
    }
  }
  return namedPaths
}
