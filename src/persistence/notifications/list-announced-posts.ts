import type { Knex } from 'knex'
import { type ListedPost, listPosts, type ViewerIds } from '../posts/list-posts.js'
import { ANNOUNCEMENT_BATCH_SIZE } from './announcements.js'

/** Lists posts by ids. The caller has checked that they are in the reader's main stream. */
export function listAnnouncedPosts(
  db: Knex,
  reader: ViewerIds,
  ids: readonly number[],
): Promise<readonly ListedPost[]> {
  const selectPosts = (columns: string) => `select ${columns} from posts where posts.id = any($3::bigint[])`
  return listPosts(db, reader, {
    name: 'announced-posts',
    maxRows: ANNOUNCEMENT_BATCH_SIZE,
    selectPosts,
    values: [ids],
  })
}
