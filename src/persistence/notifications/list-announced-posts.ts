import type { Knex } from 'knex'
import { type ListedPost, listedPosts, type Reader } from '../posts/list-posts.js'
import { ANNOUNCEMENTS_AT_ONCE } from './announcements.js'

/** Posts that are known to be in the reader's main stream, as the stream shows them. */
export function listAnnouncedPosts(db: Knex, reader: Reader, ids: readonly number[]): Promise<readonly ListedPost[]> {
  const which = (columns: string) => `select ${columns} from posts where posts.id = any($3::bigint[])`
  return listedPosts(db, reader, { name: 'announced-posts', most: ANNOUNCEMENTS_AT_ONCE, which, values: [ids] })
}
