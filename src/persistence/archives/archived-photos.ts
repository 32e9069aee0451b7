import type { Knex } from 'knex'
import { Photo } from '../models/photo.js'
import { pagesAfter } from '../sql/pages-after.js'

/** The used photos of a person that match, page by page. */
export function archivedPhotos(
  db: Knex,
  filter: { readonly authorId: number } & ({ readonly postId: null } | { readonly remotePath: null }),
  limit: number,
): AsyncGenerator<readonly Photo[]> {
  return pagesAfter({
    size: limit,
    start: 0,
    positionOf: ({ id }: Photo) => id,
    read: async (after) =>
      Photo.query(db)
        .where({ ...filter, pending: false })
        .where('id', '>', after)
        .orderBy('id')
        .limit(limit),
  })
}
