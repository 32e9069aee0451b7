import type { Knex } from 'knex'
import { type ListedPost, listedPosts, type Reader } from './list-posts.js'
import { inSight, type Sight } from './visibility.js'

/** Undefined: it is not there, or the reader may not see it. */
export async function listedPost(
  db: Knex,
  reader: Reader,
  { guid, sight }: { readonly guid: string; readonly sight: Sight },
): Promise<ListedPost | undefined> {
  const which = (columns: string) => `select ${columns} from posts where posts.guid = $3 and ${inSight[sight]}`
  const [post] = await listedPosts(db, reader, { name: `post ${sight}`, most: 1, which, values: [guid] })
  return post
}
