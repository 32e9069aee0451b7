import type { Knex } from 'knex'
import type { ListedPicture, PictureStorage } from '../../persistence/photos/picture-storage.js'
import { listPhotoFiles } from './photos.js'

/** Yields the pictures of a store that belong to no photo, in groups. */
export async function* orphanedFiles(
  db: Knex,
  pictures: Pick<PictureStorage, 'list'>,
  signal: AbortSignal,
): AsyncGenerator<readonly ListedPicture[]> {
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const listed = await pictures.list(after)
    const last = listed.at(-1)
    if (last === undefined) return
    const names = [...new Set(listed.map(({ name }) => photoNameOf(name)))]
    const storedNames = new Set<string>(await db('photos').whereIn('name', names).pluck('name'))
    yield listed.filter(({ name }) => !storedNames.has(photoNameOf(name)))
    after = last.name
  }
}

/** The name without the prefix of its size. */
function photoNameOf(file: string): string {
  const [prefix = ''] = listPhotoFiles('').filter((each) => each !== '' && file.startsWith(each))
  return file.slice(prefix.length)
}

const DAY_MS = 86_400_000
/** The photo of a file that is younger may not be stored yet, or come back with a repeated restore. */
const ORPHAN_DAYS = 7

interface RemoveOptions {
  readonly now: Date
  /** Counts only. */
  readonly dryRun: boolean
  readonly signal: AbortSignal
}

interface RemovedFiles {
  readonly days: number
  readonly rows: number
  readonly bytes: number
  readonly oldest: Date | null
}

/** Deletes pictures that have belonged to no photo for a week. */
export async function removeOrphanedFiles(
  db: Knex,
  pictures: Pick<PictureStorage, 'list' | 'delete'>,
  { now, dryRun, signal }: RemoveOptions,
): Promise<RemovedFiles> {
  const limit = new Date(now.getTime() - ORPHAN_DAYS * DAY_MS)
  let [rows, bytes, oldest]: [number, number, Date | null] = [0, 0, null]
  for await (const group of orphanedFiles(db, pictures, signal)) {
    const old = group.filter(({ modifiedAt }) => modifiedAt < limit)
    if (!dryRun) await pictures.delete(old.map(({ name }) => name))
    for (const file of old) {
      rows += 1
      bytes += file.bytes
      if (oldest === null || file.modifiedAt < oldest) oldest = file.modifiedAt
    }
  }
  return { days: ORPHAN_DAYS, rows, bytes, oldest }
}
