import type { Knex } from 'knex'
import { type ListedPost, listPosts, type ViewerIds } from './list-posts.js'
import { isAuthorUnblockedSql, type Visibility, visibilityCondition } from './visibility.js'

/** Undefined: there is no such post, or the viewer may not see it. */
export async function findListedPost(
  db: Knex,
  viewer: ViewerIds,
  { guid, visibility }: { readonly guid: string; readonly visibility: Visibility },
): Promise<ListedPost | undefined> {
  const selectPosts = (columns: string) =>
    `select ${columns} from posts where posts.guid = $3 and ${visibilityCondition[visibility]} and ${isAuthorUnblockedSql('posts.author_id')}`
  const [post] = await listPosts(db, viewer, { name: `post ${visibility}`, maxRows: 1, selectPosts, values: [guid] })
  return post
}
