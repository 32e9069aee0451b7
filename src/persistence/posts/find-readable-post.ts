import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import type { Reader } from './list-posts.js'

/** A post that somebody may see, and a comment of this name under it; null: there is no such comment. */
export interface ReadablePost {
  readonly id: number
  readonly public: boolean
  readonly commentId: number | null
}

/** The same rule as in `Post.readableBy`, where nothing but the place of the post is needed. */
export async function findReadablePost(
  db: Knex,
  { userId, personId }: Reader,
  { postGuid, commentGuid = '' }: { readonly postGuid: string; readonly commentGuid?: string | undefined },
): Promise<ReadablePost | undefined> {
  const [post] = await queryPrepared<ReadablePost>(db, 'readable-post', readable, [
    userId,
    personId,
    postGuid,
    commentGuid,
  ])
  return post
}

const readable = `
  select
    posts.id, posts.public,
    (select comments.id from comments where comments.guid = $4 and comments.post_id = posts.id) as "commentId"
  from posts
  where posts.guid = $3 and (
    posts.public or posts.author_id = $2
    or exists (select from post_visibilities where post_visibilities.post_id = posts.id and user_id = $1)
  )`
