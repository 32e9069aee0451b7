import type { Knex } from 'knex'
import { type ListedPost, listPosts, type ViewerIds } from '../posts/list-posts.js'
import { LIVE_EVENT_BATCH_SIZE } from './live-event-sources.js'

/** Lists posts by ids. The caller has checked that they are in the viewer's main stream. */
export function listPostsOfLiveEvents(
  db: Knex,
  viewer: ViewerIds,
  ids: readonly number[],
): Promise<readonly ListedPost[]> {
  const selectPosts = (columns: string) => `select ${columns} from posts where posts.id = any($3::bigint[])`
  return listPosts(db, viewer, {
    name: 'live-event-posts',
    maxRows: LIVE_EVENT_BATCH_SIZE,
    selectPosts,
    values: [ids],
  })
}
