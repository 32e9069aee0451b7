import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { pagesAfter } from '../sql/pages-after.js'
import type { ArchivedPod } from './archived-account.js'

/** A post of the archive, with the values next to its entity. */
export interface ArchivedPost {
  readonly id: number
  readonly guid: string
  readonly public: boolean
  readonly createdAt: Date
  readonly aspects: readonly string[]
  /** Pods of people who take part in the post. */
  readonly pods: readonly ArchivedPod[]
  /** Addresses of the readers of a private post. */
  readonly readers: readonly string[]
}

interface PostsQuery {
  readonly personId: number
  /** Later posts are left out. */
  readonly upTo: Date
  readonly limit: number
}

/** The posts of a person page by page, the oldest first. */
export function archivedPosts(db: Knex, query: PostsQuery): AsyncGenerator<readonly ArchivedPost[]> {
  return postPages(db, query, `, guid, public, ${BESIDE_POST_SQL}`)
}

/** The ids of the posts of the archive. */
export function archivedPostIds(db: Knex, query: PostsQuery): AsyncGenerator<readonly Pick<ArchivedPost, 'id'>[]> {
  return postPages(db, query)
}

function postPages<Row extends Pick<ArchivedPost, 'id' | 'createdAt'>>(
  db: Knex,
  { personId, upTo, limit }: PostsQuery,
  moreColumns = '',
): AsyncGenerator<readonly Row[]> {
  return pagesAfter({
    size: limit,
    start: { createdAt: new Date(0), id: 0 },
    positionOf: ({ createdAt, id }: Row) => ({ createdAt, id }),
    async read(after) {
      return queryRows<Row>(
        db,
        `select id, created_at as "createdAt"${moreColumns}
         from posts
         where author_id = ? and (created_at, id) > (?, ?) and created_at <= ?
         order by created_at, id limit ?`,
        [personId, after.createdAt, after.id, upTo, limit],
      )
    },
  })
}

const BESIDE_POST_SQL = `
       array(select aspects.name from post_aspects join aspects on aspects.id = post_aspects.aspect_id
             where post_aspects.post_id = posts.id order by aspects.position, aspects.id) as aspects,
       case when posts.public then coalesce((
         select json_agg(distinct jsonb_build_object('host', pods.host, 'port', pods.port, 'ssl', pods.ssl))
         from participations join people on people.id = participations.author_id join pods on pods.id = people.pod_id
         where participations.post_id = posts.id), '[]') else '[]' end as pods,
       case when posts.public then '{}'::text[] else array(
         select reader.address from post_visibilities
         join users on users.id = post_visibilities.user_id join people reader on reader.id = users.person_id
         where post_visibilities.post_id = posts.id and users.person_id <> posts.author_id
         union
         select member.address from post_aspects
         join aspect_memberships on aspect_memberships.aspect_id = post_aspects.aspect_id
         join contacts on contacts.id = aspect_memberships.contact_id
         join people member on member.id = contacts.person_id
         where post_aspects.post_id = posts.id
         order by 1) end as readers`

const OWN_RELAYABLES = {
  comment: { table: 'comments', parent: 'post_id' },
  like: { table: 'likes', parent: 'post_id' },
  likeOfComment: { table: 'likes', parent: 'comment_id' },
  vote: { table: 'poll_participations', parent: 'poll_id' },
} as const

interface OwnRelayable {
  readonly guid: string
  readonly parent: number
  readonly id: number
}

interface SubscribedPost {
  readonly guid: string
  readonly id: number
}

export type ArchivedRelayableKind = keyof typeof OWN_RELAYABLES

/** Guids of a person's own comments, likes or votes, page by page in the order of their parents, which has an index. */
export async function* ownRelayableGuids(
  db: Knex,
  kind: ArchivedRelayableKind,
  personId: number,
  limit: number,
): AsyncGenerator<readonly string[]> {
  const { table, parent } = OWN_RELAYABLES[kind]
  const pages = pagesAfter({
    size: limit,
    start: [0, 0],
    positionOf: (row: OwnRelayable) => [row.parent, row.id],
    async read(after) {
      return queryRows<OwnRelayable>(
        db,
        `select guid, ${parent} as parent, id from ${table}
         where author_id = ? and (${parent}, id) > (?, ?) order by ${parent}, id limit ?`,
        [personId, ...after, limit],
      )
    },
  })
  for await (const page of pages) yield page.map(({ guid }) => guid)
}

/** Guids of the posts of others in which a person takes part, page by page. */
export async function* subscribedPostGuids(
  db: Knex,
  personId: number,
  limit: number,
): AsyncGenerator<readonly string[]> {
  const pages = pagesAfter({
    size: limit,
    start: 0,
    positionOf: (row: SubscribedPost) => row.id,
    async read(after) {
      return queryRows<SubscribedPost>(
        db,
        `select posts.guid, posts.id
         from participations join posts on posts.id = participations.post_id
         where participations.author_id = ? and participations.post_id > ? and posts.author_id <> participations.author_id
         order by participations.post_id limit ?`,
        [personId, after, limit],
      )
    },
  })
  for await (const page of pages) yield page.map(({ guid }) => guid)
}

/** The relayables below posts, comments and polls: the table, the column with the id of the parent, and the order of its index. */
const RELAYABLES_BELOW = {
  comment: { table: 'comments', parent: 'post_id', order: ['created_at', 'id'] },
  like: { table: 'likes', parent: 'post_id', order: ['id'] },
  likeOfComment: { table: 'likes', parent: 'comment_id', order: ['id'] },
  vote: { table: 'poll_participations', parent: 'poll_id', order: ['author_id'] },
} as const

interface RelayablesQuery {
  readonly kind: ArchivedRelayableKind
  readonly parentIds: readonly number[]
  readonly personId: number
  readonly limit: number
}

interface RelayableRow {
  readonly id: number
  readonly guid: string
  /** Written by the person. */
  readonly isOwn: boolean
  readonly parentId: number
  /** The values of the columns by which the parent's rows are ordered. */
  readonly position: readonly (number | string)[]
}

/**
 * Relayables below posts, comments or polls of a person. One statement reads the first rows of all parents, at most `limit` for each,
 * which is all rows of most parents; further rows of a parent are read page by page.
 */
export async function* relayablesBelow(
  db: Knex,
  { kind, parentIds, personId, limit }: RelayablesQuery,
): AsyncGenerator<readonly Pick<RelayableRow, 'id' | 'guid' | 'isOwn'>[]> {
  if (parentIds.length === 0) return
  const { table, parent, order } = RELAYABLES_BELOW[kind]
  const below = (condition: string) => `
    select id, guid, author_id = ? as "isOwn", ${parent} as "parentId", jsonb_build_array(${order.join(', ')}) as position
    from ${table} where ${condition} order by ${order.join(', ')} limit ?`
  const rows = await queryRows<RelayableRow>(
    db,
    `select found.* from unnest(?::bigint[]) as parents (parent_id)
     cross join lateral (${below(`${parent} = parents.parent_id`)}) as found`,
    [[...parentIds], personId, limit],
  )
  if (rows.length > 0) yield rows

  const types = order.map((column) => (column === 'created_at' ? '?::timestamptz' : '?::bigint'))
  const next = below(`${parent} = ? and (${order.join(', ')}) > (${types.join(', ')})`)
  for (const parentId of parentIds) {
    let page = rows.filter((row) => row.parentId === parentId)
    while (page.length === limit) {
      const last = page.at(-1)
      page = await queryRows<RelayableRow>(db, next, [personId, parentId, ...(last?.position ?? []), limit])
      if (page.length > 0) yield page
    }
  }
}

/** Polls of posts. */
export async function findPollIds(db: Knex, postIds: readonly number[]): Promise<readonly number[]> {
  const rows = await queryRows<{ readonly id: number }>(db, 'select id from polls where post_id = any(?) order by id', [
    [...postIds],
  ])
  return rows.map(({ id }) => id)
}

/** When likes and votes were made: their entities do not contain it. */
export async function findCreationTimes(
  db: Knex,
  table: 'likes' | 'poll_participations',
  guids: readonly string[],
): Promise<ReadonlyMap<string, Date>> {
  const rows = await queryRows<{ readonly guid: string; readonly createdAt: Date }>(
    db,
    `select guid, created_at as "createdAt" from ${table} where guid = any(?)`,
    [[...guids]],
  )
  return new Map(rows.map((row) => [row.guid, row.createdAt]))
}
