import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'

/** The file of a photo whose author has moved away. */
export interface MovedFile {
  readonly photoId: number
  /** The name of the original. */
  readonly name: string
  /** The photo is on this pod again, with the same file. */
  readonly isUsed: boolean
}

/** Finds files of photos that moved more than this number of days ago, the oldest first. */
export async function findDueMovedFiles(
  db: Knex,
  { days, limit }: { readonly days: number; readonly limit: number },
): Promise<readonly MovedFile[]> {
  return queryRows<MovedFile>(
    db,
    `select photo_id as "photoId", moved.name, photos.remote_path is null and photos.name = moved.name as "isUsed"
     from moved_photo_files as moved join photos on photos.id = photo_id
     where deleted_at is null and moved_at < now() - make_interval(days => :days)
     order by moved_at limit :limit`,
    { days, limit },
  )
}

/** Notes that these files no longer exist. */
export async function markMovedFilesDeleted(db: Knex, files: readonly MovedFile[]): Promise<void> {
  await db.raw(
    `update moved_photo_files as moved set deleted_at = date_trunc('milliseconds', now())
     from unnest(?::bigint[], ?::text[]) as input(photo_id, name)
     where moved.photo_id = input.photo_id and moved.name = input.name`,
    [files.map(({ photoId }) => photoId), files.map(({ name }) => name)],
  )
}

/** Counts of the photos of people who have moved away. A photo has a file for each size. */
export interface MovedFileCount {
  /** Photos whose files are still on this pod. */
  readonly files: number
  /** Photos whose files are due for deletion. */
  readonly due: number
  /** When the oldest of them moved. */
  readonly oldest: Date | null
}

export async function countMovedFiles(db: Knex, days: number): Promise<MovedFileCount> {
  return queryRow<MovedFileCount>(
    db,
    `select count(*)::integer as files, min(moved_at) as oldest,
       (count(*) filter (where moved_at < now() - make_interval(days => :days)))::integer as due
     from moved_photo_files where deleted_at is null`,
    { days },
  )
}
