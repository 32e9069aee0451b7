import type { Knex } from 'knex'
import { LOCAL_ASPECT_MEMBERS_SQL } from '../models/post.js'

/** Shares a photo without a post with the local members of these aspects. */
export async function sharePhoto(
  transaction: Knex.Transaction,
  photoId: number,
  aspectIds: readonly number[],
): Promise<void> {
  for (const statement of shareStatements) await transaction.raw(statement, { photoId, aspectIds: [...aspectIds] })
}

// With cast(), because knex reads `:name::type` as a column name.
const shareStatements = [
  // Locks the aspects: one that is being deleted is skipped, or its deletion waits.
  `insert into photo_aspects (photo_id, aspect_id)
   select cast(:photoId as bigint), id from aspects where id = any(:aspectIds) order by id for key share`,
  `insert into photo_visibilities (user_id, photo_id)
   select members.id, cast(:photoId as bigint) from (${LOCAL_ASPECT_MEMBERS_SQL}) as members`,
]
