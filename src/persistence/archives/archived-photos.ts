import type { Knex } from 'knex'
import { Photo } from '../models/photo.js'
import { pagesBehind } from '../sql/pages-behind.js'

/** The used photos of a person that match, page by page. */
export function archivedPhotos(
  db: Knex,
  which: { readonly authorId: number } & ({ readonly postId: null } | { readonly remotePath: null }),
  limit: number,
): AsyncGenerator<readonly Photo[]> {
  return pagesBehind({
    size: limit,
    start: 0,
    positionOf: ({ id }: Photo) => id,
    read: async (behind) =>
      Photo.query(db)
        .where({ ...which, pending: false })
        .where('id', '>', behind)
        .orderBy('id')
        .limit(limit),
  })
}
