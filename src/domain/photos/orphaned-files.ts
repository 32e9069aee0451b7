import type { Knex } from 'knex'
import { findImportingPeople } from '../../persistence/archives/imports.js'
import { isBackupRunning } from '../../persistence/operations/backup-runs.js'
import { findPictureCount, type PictureCount, savePictureCount } from '../../persistence/photos/picture-counts.js'
import type { ListedPicture, PictureStorage } from '../../persistence/photos/picture-storage.js'
import { DAY_MS } from '../../protocol/durations.js'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import { listPhotoFiles } from './photos.js'

interface FileGroup {
  readonly files: readonly ListedPicture[]
  /** Files that belong to no photo, and to no account whose import is not finished. */
  readonly orphans: readonly ListedPicture[]
}

/** Yields the pictures of a store behind a name, in groups. */
export async function* readFiles(
  db: Knex,
  pictures: Pick<PictureStorage, 'list'>,
  start: string,
  signal: AbortSignal,
): AsyncGenerator<FileGroup> {
  for (let after = start; ; ) {
    signal.throwIfAborted()
    const files = await pictures.list(after)
    const last = files.at(-1)
    if (last === undefined) return
    const importers = await findImportingPeople(db)
    const names = [...new Set(files.map(({ name }) => photoNameOf(name)))]
    const storedNames = new Set<string>([
      ...(await db('photos').whereIn('name', names).pluck('name')),
      ...(await db('moved_photo_files').whereIn('name', names).whereNull('deletedAt').pluck('name')),
    ])
    const isStored = (name: string) => storedNames.has(name) || importers.some((guid) => name.startsWith(`${guid}-`))
    yield { files, orphans: files.filter(({ name }) => !isStored(photoNameOf(name))) }
    after = last.name
  }
}

/** The name without the prefix of its size. */
function photoNameOf(file: string): string {
  return file.slice(sizePrefixOf(file).length)
}

/** The prefix of the size of a file; empty for an original. */
export function sizePrefixOf(file: string): string {
  return listPhotoFiles('').find((each) => each !== '' && file.startsWith(each)) ?? ''
}

/** The photo of a file that is younger may not be stored yet. */
const ORPHAN_DAYS = 7

export async function refuseDuringBackup(db: Knex): Promise<void> {
  if (await isBackupRunning(db)) {
    throw new Refusal(
      'backup_running',
      'A backup is running, which may need these pictures: repeat this when it has ended.',
    )
  }
}

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

/**
 * Deletes pictures without a photo that are older than a week, whenever their photo was deleted. Refused while a backup runs: its
 * snapshot may have the photo, and it still has to read the picture.
 */
export async function removeOrphanedFiles(
  db: Knex,
  pictures: Pick<PictureStorage, 'list' | 'delete'>,
  { now, dryRun, signal }: RemoveOptions,
): Promise<RemovedFiles> {
  const limit = new Date(now.getTime() - ORPHAN_DAYS * DAY_MS)
  let [rows, bytes, oldest]: [number, number, Date | null] = [0, 0, null]
  for await (const { orphans: group } of readFiles(db, pictures, '', signal)) {
    const oldFiles = group.filter(({ modifiedAt }) => modifiedAt < limit)
    if (!dryRun) {
      // After the lookup of the photos: a backup that begins now has none of these in its snapshot.
      await refuseDuringBackup(db)
      await pictures.delete(oldFiles.map(({ name }) => name))
    }
    for (const file of oldFiles) {
      rows += 1
      bytes += file.bytes
      if (oldest === null || file.modifiedAt < oldest) oldest = file.modifiedAt
    }
  }
  return { days: ORPHAN_DAYS, rows, bytes, oldest }
}

/** A count of all pictures that is so old is repeated. */
const COUNT_INTERVAL_MS = DAY_MS

/**
 * Counts the pictures of the store and those without a photo, once a day, for the storage page. Stops after some time; the next run
 * continues there. Pictures of uploads in progress count as orphans for some seconds.
 */
export async function countPictures(
  { db, pictures, now }: Pick<Services, 'db' | 'now'> & { readonly pictures: Pick<PictureStorage, 'list'> },
  { milliseconds, signal }: { readonly milliseconds: number; readonly signal: AbortSignal },
): Promise<void> {
  const last = await findPictureCount(db, 'complete')
  if (last !== undefined && last.countedAt.getTime() > now().getTime() - COUNT_INTERVAL_MS) return
  const until = performance.now() + milliseconds
  let count: PictureCount = (await findPictureCount(db, 'running')) ?? { ...NOTHING, countedAt: now() }
  for await (const { files, orphans } of readFiles(db, pictures, count.after, signal)) {
    count = {
      after: files.at(-1)?.name ?? count.after,
      files: count.files + files.length,
      bytes: count.bytes + bytesOf(files),
      orphans: count.orphans + orphans.length,
      orphanBytes: count.orphanBytes + bytesOf(orphans),
      countedAt: now(),
    }
    if (performance.now() > until) return savePictureCount(db, 'running', count)
  }
  await savePictureCount(db, 'complete', { ...count, countedAt: now() })
}

const NOTHING = { after: '', files: 0, bytes: 0, orphans: 0, orphanBytes: 0 } as const

function bytesOf(files: readonly ListedPicture[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0)
}
