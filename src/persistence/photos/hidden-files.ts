import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

/**
 * Whether a file, of any size, belongs to a photo that moderators have hidden. Reads the partial index `photos_hidden_files`, which has
 * the hidden local photos only.
 */
export async function isFileOfHiddenPhoto(db: Knex, fileName: string): Promise<boolean> {
  const withoutPrefix = fileName.slice(fileName.lastIndexOf('_') + 1)
  const rows = await queryPrepared(db, 'hidden-file', HIDDEN_FILE_SQL, [[fileName, withoutPrefix]])
  return rows.length > 0
}

const HIDDEN_FILE_SQL = `
  select from photos
  where name = any($1::text[]) and public_before_hiding is not null and remote_path is null limit 1`
