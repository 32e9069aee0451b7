import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import type { ViewerIds } from './list-posts.js'
import { isAuthorUnblockedSql } from './visibility.js'

/** A post that a viewer may see, and the id of one of its comments. Null: the post has no such comment. */
export interface ReadablePost {
  readonly id: number
  readonly public: boolean
  readonly commentId: number | null
}

/** Finds the id of a post that the viewer may see (rule: `isReadableBySql`), and of one of its comments. Reads unique keys only. */
export async function findReadablePost(
  db: Knex,
  { userId, personId }: ViewerIds,
  { postGuid, commentGuid = '' }: { readonly postGuid: string; readonly commentGuid?: string | undefined },
): Promise<ReadablePost | undefined> {
  const [post] = await queryPrepared<ReadablePost>(db, 'readable-post', READABLE_POST_SQL, [
    userId,
    personId,
    postGuid,
    commentGuid,
  ])
  return post
}

const READABLE_POST_SQL = `
  select
    posts.id, posts.public,
    (
      select comments.id from comments
      where comments.guid = $4 and comments.post_id = posts.id and (not comments.hidden or comments.author_id = $2)
        and ${isAuthorUnblockedSql('comments.author_id')}
    ) as "commentId"
  from posts
  where posts.guid = $3 and (
    posts.public or posts.author_id = $2
    or exists (select from post_visibilities where post_visibilities.post_id = posts.id and user_id = $1)
  ) and ${isAuthorUnblockedSql('posts.author_id')}`
