import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** Who has an entity with a guid here, by address. */
export async function findAuthorsOfGuids(
  db: Knex,
  table: 'posts' | 'comments' | 'likes' | 'poll_participations' | 'polls' | 'photos',
  guids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (guids.length === 0) return new Map()
  const author = table === 'polls' ? 'posts.author_id' : `${table}.author_id`
  const viaPost = table === 'polls' ? 'join posts on posts.id = polls.post_id' : ''
  const rows = await queryRows<{ readonly guid: string; readonly address: string }>(
    db,
    `select ${table}.guid, people.address from ${table} ${viaPost} join people on people.id = ${author}
     where ${table}.guid = any(?)`,
    [[...guids]],
  )
  return new Map(rows.map((row) => [row.guid, row.address]))
}

/** The person who imports, with the person of the old account. */
export interface Reader {
  readonly userId: number
  readonly personIds: readonly number[]
}

/** The posts among these that a person may read: an archive can name the guid of any other post. */
export async function findReadablePosts(
  db: Knex,
  { userId, personIds }: Reader,
  guids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (guids.length === 0) return new Set()
  const rows = await queryRows<{ readonly guid: string }>(
    db,
    `select guid from posts
     where guid = any(:guids) and (
       public or author_id = any(:people)
       or exists (select from post_visibilities where user_id = :userId and post_id = posts.id)
       or exists (
         select from post_aspects
         join aspect_memberships on aspect_memberships.aspect_id = post_aspects.aspect_id
         join contacts on contacts.id = aspect_memberships.contact_id
         where post_aspects.post_id = posts.id and contacts.person_id = any(:people)
       )
     )`,
    { guids: [...new Set(guids)], userId, people: [...personIds] },
  )
  return new Set(rows.map(({ guid }) => guid))
}

/** A post, comment or poll with relayables, and the post that it belongs to. */
export interface RelayableParent {
  readonly guid: string
  readonly threadGuid: string
  readonly threadAuthorId: number
  readonly threadCreatedAt: Date
}

/** Finds stored parents by guid: the key is `Post guid`, `Comment guid` or `Poll guid`. */
export async function findParents(db: Knex, guids: readonly string[]): Promise<ReadonlyMap<string, RelayableParent>> {
  if (guids.length === 0) return new Map()
  const rows = await queryRows<RelayableParent & { readonly kind: string }>(
    db,
    `select 'Post' as kind, guid, guid as "threadGuid", author_id as "threadAuthorId", created_at as "threadCreatedAt"
     from posts where guid = any(:guids)
     union all
     select 'Comment', comments.guid, posts.guid, posts.author_id, posts.created_at
     from comments join posts on posts.id = comments.post_id where comments.guid = any(:guids)
     union all
     select 'Poll', polls.guid, posts.guid, posts.author_id, posts.created_at
     from polls join posts on posts.id = polls.post_id where polls.guid = any(:guids)`,
    { guids: [...guids] },
  )
  return new Map(
    rows.map(({ kind, ...row }) => [`${kind} ${row.guid}`, { ...row, threadAuthorId: Number(row.threadAuthorId) }]),
  )
}

/** A person's reaction to a parent. */
export interface ReactionKey {
  readonly kind: 'Post' | 'Comment' | 'Poll'
  readonly parent: string
  readonly author: string
}

/** Which of these reactions exist, as `kind parent author`: a person likes or votes once. */
export async function findReactions(db: Knex, reactions: readonly ReactionKey[]): Promise<ReadonlySet<string>> {
  if (reactions.length === 0) return new Set()
  const rows = await queryRows<{ readonly key: string }>(
    db,
    `select concat_ws(' ', input.kind, input.parent, input.author) as key
     from json_to_recordset(?::json) as input(kind text, parent text, author text)
     join people on people.address = input.author
     where case input.kind
       when 'Post' then exists (
         select from likes join posts on posts.id = likes.post_id where posts.guid = input.parent and likes.author_id = people.id)
       when 'Comment' then exists (
         select from likes join comments on comments.id = likes.comment_id
         where comments.guid = input.parent and likes.author_id = people.id)
       else exists (
         select from poll_participations join polls on polls.id = poll_participations.poll_id
         where polls.guid = input.parent and poll_participations.author_id = people.id)
     end`,
    [JSON.stringify(reactions)],
  )
  return new Set(rows.map(({ key }) => key))
}

/** Finds stored posts, which may be roots of reshares. */
export async function findRoots(
  db: Knex,
  guids: readonly string[],
): Promise<ReadonlyMap<string, { readonly public: boolean; readonly type: string }>> {
  if (guids.length === 0) return new Map()
  const rows = await queryRows<{ readonly guid: string; readonly public: boolean; readonly type: string }>(
    db,
    'select guid, public, type from posts where guid = any(?)',
    [[...guids]],
  )
  return new Map(rows.map((row) => [row.guid, row]))
}

/** The private posts of a person that no aspect has. */
export async function findPostsWithoutAspects(
  db: Knex,
  authorId: number,
  guids: readonly string[],
): Promise<readonly { readonly id: number; readonly guid: string }[]> {
  return db('posts')
    .whereIn('guid', [...guids])
    .where({ authorId, public: false })
    .whereNotExists(db('postAspects').whereRaw('post_aspects.post_id = posts.id'))
    .orderBy('id')
    .select('id', 'guid')
}

/** Marks posts as shared with aspects. */
export async function insertPostAspects(
  transaction: Knex.Transaction,
  pairs: readonly { readonly postId: number; readonly aspectId: number }[],
): Promise<void> {
  if (pairs.length === 0) return
  await transaction('postAspects')
    .insert([...pairs])
    .onConflict()
    .ignore()
}

/** Subscribes a local person to posts; returns the guids of those that were not subscribed yet. */
export async function subscribeToPosts(
  transaction: Knex.Transaction,
  personId: number,
  posts: readonly { readonly guid: string; readonly participation: string }[],
): Promise<ReadonlySet<string>> {
  if (posts.length === 0) return new Set()
  const rows = await queryRows<{ readonly guid: string }>(
    transaction,
    `with subscribed as (
       insert into participations (guid, post_id, author_id)
       select input.participation, posts.id, ?
       from json_to_recordset(?::json) as input(guid text, participation text) join posts on posts.guid = input.guid
       order by posts.id
       on conflict do nothing
       returning post_id
     )
     select posts.guid from subscribed join posts on posts.id = subscribed.post_id`,
    [personId, JSON.stringify(posts)],
  )
  return new Set(rows.map(({ guid }) => guid))
}

/** The posts among these in which a person takes part. */
export async function findSubscribed(
  db: Knex,
  personId: number,
  guids: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await queryRows<{ readonly guid: string }>(
    db,
    `select posts.guid from posts join participations on participations.post_id = posts.id and participations.author_id = ?
     where posts.guid = any(?)`,
    [personId, [...guids]],
  )
  return new Set(rows.map(({ guid }) => guid))
}

/** Hides or mutes posts for a user. */
export async function markPosts(
  transaction: Knex.Transaction,
  table: 'hidden_posts' | 'muted_posts',
  userId: number,
  guids: readonly string[],
): Promise<void> {
  if (guids.length === 0) return
  await transaction.raw(
    `insert into ${table} (user_id, post_id) select ?, id from posts where guid = any(?) order by id on conflict do nothing`,
    [userId, [...guids]],
  )
}
