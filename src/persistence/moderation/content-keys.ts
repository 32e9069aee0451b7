import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { followRowSql } from '../people/restricted-people.js'

/** New public content, as the search for clusters reads it. */
export interface NewContent {
  readonly type: 'post' | 'comment' | 'conversation'
  readonly id: number
  readonly authorId: number
  /** The author of the post. */
  readonly ownerId: number
  readonly text: string
  /** Addresses of the photos of a post. */
  readonly photos: readonly string[]
}

export const NEW_CONTENT_SOURCES = ['posts', 'comments', 'conversations'] as const
export type NewContentSource = (typeof NEW_CONTENT_SOURCES)[number]

/** Where to begin with the new rows of a table. The first call begins after the stored rows. */
export async function findReadPosition(
  db: Knex,
  source: NewContentSource,
): Promise<{ readonly safeId: number; readonly lastId: number }> {
  const readPosition = await db('readPositions').where({ source }).first('safeId', 'lastId')
  if (readPosition !== undefined) return readPosition
  const [{ last = 0 } = {}] = await db(source).max({ last: 'id' })
  return { safeId: last ?? 0, lastId: last ?? 0 }
}

export async function saveReadPosition(
  db: Knex,
  source: NewContentSource,
  position: { readonly safeId: number; readonly lastId: number },
): Promise<void> {
  await db('readPositions')
    .insert({ source, ...position })
    .onConflict('source')
    .merge()
}

const NEW_CONTENT_SQL: Readonly<Record<NewContentSource, string>> = {
  posts: `
    select 'post' as type, posts.id, posts.author_id as "authorId", posts.author_id as "ownerId", posts.text,
      array(
        select photos.remote_path || photos.name from photos
        where photos.post_id = posts.id and photos.remote_path is not null order by photos.position, photos.id
      ) as photos
    from posts where posts.id > :after and posts.type = 'StatusMessage' and posts.public
    order by posts.id limit :limit`,
  comments: `
    select 'comment' as type, comments.id, comments.author_id as "authorId", posts.author_id as "ownerId", comments.text,
      array[]::text[] as photos
    from comments join posts on posts.id = comments.post_id
    where comments.id > :after and posts.public
    order by comments.id limit :limit`,
  // Numbers only: conversations with local people who do not follow their author.
  conversations: `
    select 'conversation' as type, conversations.id, conversations.author_id as "authorId", conversations.author_id as "ownerId",
      '' as text, array[]::text[] as photos
    from conversations
    where conversations.id > :after and exists (
      select from conversation_visibilities as participants
      join users on users.person_id = participants.person_id
      where participants.conversation_id = conversations.id and participants.person_id <> conversations.author_id
        and not exists (select from ${followRowSql('users.id', 'conversations.author_id')})
    )
    order by conversations.id limit :limit`,
}

/** Rows of one table after an id, in the order of ids. */
export async function readNewContent(
  db: Knex,
  source: NewContentSource,
  page: { readonly after: number; readonly limit: number },
): Promise<readonly NewContent[]> {
  return queryRows<NewContent>(db, NEW_CONTENT_SQL[source], { ...page })
}

export interface NewContentKey extends Pick<NewContent, 'type' | 'id' | 'authorId' | 'ownerId'> {
  readonly key: string
}

/** Keeps the keys of content; those that are known stay as they are. */
export async function insertContentKeys(db: Knex, keys: readonly NewContentKey[], at: Date): Promise<void> {
  if (keys.length === 0) return
  await db.raw(
    `insert into content_keys (key, type, content_id, author_id, owner_id, at)
     select key, type, id, "authorId", "ownerId", :at
     from json_to_recordset(cast(:keys as json)) as input(key text, type text, id bigint, "authorId" bigint, "ownerId" bigint)
     on conflict do nothing`,
    { keys: JSON.stringify(keys), at },
  )
}

export async function deleteContentKeysBefore(db: Knex, before: Date): Promise<void> {
  await db('contentKeys').where('at', '<', before).delete()
}

export interface ClusterThresholds {
  /** The number of items with one key that makes a cluster, if `authors` is reached too. */
  readonly items: number
  /** The number of authors of these items. */
  readonly authors: number
  /** The number of items with one key by one author that makes a cluster, if `owners` is reached too. */
  readonly itemsOfAuthor: number
  /** The number of people under whose posts these items are. */
  readonly owners: number
  /** Only authors count who were first seen since then, or who are all of one pod. */
  readonly newSince: Date
  /** Only content counts that was read since then. */
  readonly since: Date
}

/** Returns the given keys whose content passes the thresholds. */
export async function findClusterKeys(
  db: Knex,
  keys: readonly string[],
  { items, authors, itemsOfAuthor, owners, newSince, since }: ClusterThresholds,
): Promise<readonly string[]> {
  const rows = await queryRows<{ readonly key: string }>(
    db,
    `with counted as (
       select content_keys.key, content_keys.author_id, content_keys.owner_id, people.pod_id, people.created_at >= :newSince as is_new
       from content_keys join people on people.id = content_keys.author_id
       where content_keys.key = any(cast(:keys as text[])) and content_keys.at >= :since
         -- Content that was cleaned does not count again.
         and not exists (
           select from clusters join cluster_items as items on items.cluster_id = clusters.id
           where clusters.key = content_keys.key and clusters.state in ('cleaning', 'cleaned', 'restoring')
             and items.type = content_keys.type and items.content_id = content_keys.content_id
         )
     ), by_author as (
       select key, author_id, is_new, pod_id, count(*) as items, count(distinct owner_id) as owners
       from counted group by key, author_id, is_new, pod_id
     )
     select key from by_author where is_new group by key having sum(items) >= :items and count(*) >= :authors
     union
     select key from by_author where pod_id is not null group by key, pod_id having sum(items) >= :items and count(*) >= :authors
     union
     select key from by_author where items >= :itemsOfAuthor and owners >= :owners and (is_new or pod_id is not null)
     limit 100`,
    { keys: [...keys], items, authors, itemsOfAuthor, owners, newSince, since },
  )
  return rows.map(({ key }) => key)
}

/** Authors who have begun more conversations than `moreThan`, with their number. */
export async function findConversationSenders(
  db: Knex,
  keys: readonly string[],
  { since, moreThan }: { readonly since: Date; readonly moreThan: number },
): Promise<readonly { readonly authorId: number; readonly count: number }[]> {
  return queryRows<{ readonly authorId: number; readonly count: number }>(
    db,
    `select author_id as "authorId", count(*)::integer as count from content_keys
     where key = any(?) and at >= ? group by author_id having count(*) > ? limit 100`,
    [[...keys], since, moreThan],
  )
}
