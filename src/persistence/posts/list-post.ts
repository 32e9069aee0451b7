import type { Knex } from 'knex'
import { type ListedPost, listedPosts, type Reader } from './list-posts.js'
import { type Visibility, visibilityCondition } from './visibility.js'

/** Undefined: it is not there, or the reader may not see it. */
export async function listedPost(
  db: Knex,
  reader: Reader,
  { guid, visibility }: { readonly guid: string; readonly visibility: Visibility },
): Promise<ListedPost | undefined> {
  const which = (columns: string) =>
    `select ${columns} from posts where posts.guid = $3 and ${visibilityCondition[visibility]}`
  const [post] = await listedPosts(db, reader, { name: `post ${visibility}`, most: 1, which, values: [guid] })
  return post
}
