import type { Knex } from 'knex'
import { hasRow } from './has-row.js'
import { type ListedPost, listedPosts, type Reader } from './listed-posts.js'

/** Undefined: it is not there, or the reader may not see it. */
export async function listedPost(
  db: Knex,
  reader: Reader,
  { guid, reach }: { readonly guid: string; readonly reach: 'public' | 'readable' },
): Promise<ListedPost | undefined> {
  const which = `select posts.id from posts where posts.guid = $3 and (${reaches[reach]})`
  const [post] = await listedPosts(db, reader, { name: `post ${reach}`, most: 1, which, values: [guid] })
  return post
}

/** The same rule as in `Post.readableBy`. What somebody does not reach still needs their ids: each statement has both. */
const reaches = {
  public: 'posts.public',
  readable: `posts.public or posts.author_id = $2
    or ${hasRow('post_visibilities where user_id = $1 and post_visibilities.post_id = posts.id')}`,
} as const
