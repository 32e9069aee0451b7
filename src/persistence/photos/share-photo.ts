import type { Knex } from 'knex'
import { LOCAL_ASPECT_MEMBERS } from '../models/post.js'

/** Gives a photo that is no part of a post to the people in these aspects who live here. */
export async function sharePhoto(
  transaction: Knex.Transaction,
  photoId: number,
  aspectIds: readonly number[],
): Promise<void> {
  for (const statement of share) await transaction.raw(statement, { photoId, aspectIds: [...aspectIds] })
}

// Written with cast(): the library would read `:name::type` as the name of a column.
const share = [
  // Held: one that is deleted at this moment takes the photo out of its hands, or waits.
  `insert into photo_aspects (photo_id, aspect_id)
   select cast(:photoId as bigint), id from aspects where id = any(:aspectIds) order by id for key share`,
  `insert into photo_visibilities (user_id, photo_id)
   select members.id, cast(:photoId as bigint) from (${LOCAL_ASPECT_MEMBERS}) as members`,
]
