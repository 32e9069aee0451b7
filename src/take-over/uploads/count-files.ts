import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Source } from '../source/source.js'

export interface FileCount {
  /** Files in the folder, in all sizes. */
  readonly files: number
  /** Photos of local people. */
  readonly photos: number
  /** Photos without their original file. */
  readonly missing: number
}

const BATCH_SIZE = 1_000

/** The folder of pictures in the folder `uploads` of the old pod. */
export function picturesFolder(uploads: string): string {
  return join(uploads, 'images')
}

export async function hasPictures(uploads: string): Promise<boolean> {
  const folderStats = await stat(picturesFolder(uploads)).catch(() => undefined)
  return folderStats?.isDirectory() === true
}

/** Counts the files of the old pod and the photos of its users that have none. */
export async function countFiles(source: Source, uploads: string, host: string): Promise<FileCount> {
  const folder = picturesFolder(uploads)
  let files = 0
  for await (const _entry of await opendir(folder)) files += 1
  let photos = 0
  let missing = 0
  for (let after = 0; ; ) {
    const rows = await source.query<{ id: number; name: string }>(SELECT_LOCAL_PHOTOS_SQL, [after, BATCH_SIZE, host])
    const last = rows.at(-1)
    if (last === undefined) return { files, photos, missing }
    after = last.id
    photos += rows.length
    const fileStats = await Promise.all(rows.map(({ name }) => stat(join(folder, name)).catch(() => undefined)))
    missing += fileStats.filter((file) => file === undefined || !file.isFile()).length
  }
}

const SELECT_LOCAL_PHOTOS_SQL = `
  select photos.id::float as id,
    coalesce(nullif(remote_photo_name, ''), nullif(processed_image, ''), unprocessed_image, '') as name
  from photos join people on people.id = author_id and people.owner_id is not null
  where photos.id > $1 and (remote_photo_path is null or split_part(remote_photo_path, '/', 3) in ($3, 'www.' || $3))
  order by photos.id limit $2`
