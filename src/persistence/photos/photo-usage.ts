import type { Knex } from 'knex'

/** How many photos of a person there are, up to a limit, and what they take on the disk of this pod. */
export async function countPhotoUsage(
  db: Knex,
  personId: number,
  limit: number,
): Promise<{ readonly photos: number; readonly bytes: number }> {
  const { rows } = await db.raw(
    `select count(*)::integer as photos, coalesce(sum(bytes), 0)::double precision as bytes
     from (select bytes from photos where author_id = ? limit ?) as own`,
    [personId, limit],
  )
  return rows[0]
}
