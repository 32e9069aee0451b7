import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import type { Config } from '../../config/config.js'
import { imagesFolder } from '../../persistence/photos/picture-files.js'

/** Photos of local people, and how many of them have no original file. */
export interface OriginalCount {
  readonly photos: number
  readonly missing: number
}

const BATCH_SIZE = 500

/** Counts the photos whose original has arrived. Pictures of another server cannot be compared, and some were missing there before. */
export async function countOriginals(
  session: pg.Client,
  { uploadsDir }: Pick<Config, 'uploadsDir'>,
  signal: AbortSignal,
): Promise<OriginalCount> {
  const folder = imagesFolder(uploadsDir)
  let [photos, missing] = [0, 0]
  for (let after = 0; ; ) {
    signal.throwIfAborted()
    const { rows } = await session.query<{ id: number; name: string }>(SELECT_PHOTOS_SQL, [after, BATCH_SIZE])
    const last = rows.at(-1)
    if (last === undefined) return { photos, missing }
    after = last.id
    const found = await Promise.all(rows.map(({ name }) => stat(join(folder, name)).catch(() => undefined)))
    photos += rows.length
    missing += found.filter((each) => each === undefined).length
  }
}

const SELECT_PHOTOS_SQL = `
  select photos.id::float as id, photos.name from photos
  join people on people.id = photos.author_id and people.pod_id is null
  where photos.remote_path is null and photos.name <> '' and photos.id > $1 order by photos.id limit $2`
