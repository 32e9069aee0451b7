import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'

/** Counts the photos of a person up to a limit, and the bytes of their files on this pod. */
export async function countPhotoUsage(
  db: Knex,
  personId: number,
  limit: number,
): Promise<{ readonly photos: number; readonly bytes: number }> {
  return queryRow<{ readonly photos: number; readonly bytes: number }>(
    db,
    `select count(*)::integer as photos, coalesce(sum(bytes), 0)::double precision as bytes
     from (select bytes from photos where author_id = ? limit ?) as photos_of_person`,
    [personId, limit],
  )
}
