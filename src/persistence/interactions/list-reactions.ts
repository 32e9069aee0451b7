import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import type { Like } from '../models/like.js'
import type { PersonSummary } from '../people/person-summaries.js'
import type { ViewerIds } from '../posts/list-posts.js'
import { isAuthorUnblockedSql } from '../posts/visibility.js'
import { maxRowsOfPage, type OffsetPage, type Page, toPage } from '../sql/keyset-page.js'
import { opaqueParam } from '../sql/opaque-param.js'

/** A like or a reshare with its author. */
export interface ListedReaction extends Pick<Like, 'guid' | 'createdAt'> {
  readonly author: PersonSummary
}

const TARGET = opaqueParam('$2', 'bigint')

/** Tables and conditions of the reactions. */
const REACTION_SOURCES = {
  'likes-of-post': `likes where post_id = ${TARGET} and positive and ${isAuthorUnblockedSql('likes.author_id')}`,
  'likes-of-comment': `likes where comment_id = ${TARGET} and positive and ${isAuthorUnblockedSql('likes.author_id')}`,
  'reshares-of-post': `posts where root_id = ${TARGET} and public and ${isAuthorUnblockedSql('posts.author_id')}`,
} as const

/** Lists the viewer's own reaction first, then the others, oldest first. */
export async function listReactions(
  db: Knex,
  { personId }: Pick<ViewerIds, 'personId'>,
  { kind, id }: { readonly kind: keyof typeof REACTION_SOURCES; readonly id: number },
  page: OffsetPage,
): Promise<Page<ListedReaction>> {
  const values = [personId, id, page.limit + 1, page.offset]
  const maxRows = maxRowsOfPage(page)
  return toPage(
    await queryPrepared<ListedReaction>(
      db,
      `${kind} ${maxRows}`,
      () => reactionsSql(REACTION_SOURCES[kind], maxRows),
      values,
    ),
    page,
  )
}

/** A person has at most one reaction: the viewer's own is the first row, so the offset of the others is one less. */
function reactionsSql(rowsSql: string, maxRows: number): string {
  const [viewer, limit, offset] = [
    opaqueParam('$1', 'bigint'),
    opaqueParam('$3', 'bigint'),
    opaqueParam('$4', 'bigint'),
  ]
  return `
    with own as materialized (
      select id, guid, created_at, author_id from ${rowsSql} and author_id = ${viewer}
    ), others as (
      select id, guid, created_at, author_id from ${rowsSql} and author_id <> ${viewer}
      order by id limit ${limit} offset greatest(0, ${offset} - (select count(*) from own))
    )
    select
      found.guid, found.created_at as "createdAt",
      json_build_object(
        'guid', people.guid, 'address', people.address, 'name', people.name, 'avatarUrl', people.avatar_url
      ) as author
    from (
      select 0 as rank, own.* from own where ${offset} = 0
      union all
      select 1, others.* from others
      order by rank, id limit ${maxRows}
    ) as found
    join people on people.id = found.author_id
    order by found.rank, found.id limit ${limit}`
}
