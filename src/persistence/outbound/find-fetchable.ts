import type { Knex } from 'knex'
import type { FetchableKind } from '../../protocol/entities/registry.js'
import { queryPrepared } from '../database/database.js'

/** The author of an entity and their pod; null: this pod. */
export interface EntityAuthor {
  readonly personId: number
  readonly address: string
  readonly isClosed: boolean
  readonly pod: { readonly host: string; readonly port: number; readonly ssl: boolean } | null
}

/** A public entity that is stored here, with its authors. */
export interface FetchableEntity {
  readonly record: Exclude<FetchableKind, 'poll'>
  /** Guid of the record. For a poll, the guid of its post. */
  readonly guid: string
  readonly postGuid: string
  readonly author: EntityAuthor
  /** The author of the post, which for a post is the author. */
  readonly postAuthor: EntityAuthor
}

/** The guid of a public post by its number, which old links of diaspora* have. Undefined: there is none. */
export async function findPublicGuid(db: Knex, id: number): Promise<string | undefined> {
  const [row] = await queryPrepared<{ guid: string }>(
    db,
    'public-guid',
    'select guid from posts where id = $1 and public',
    [id],
  )
  return row?.guid
}

/** Undefined: the entity is unknown or not public. */
export async function findFetchableEntity(
  db: Knex,
  kind: FetchableKind,
  guid: string,
): Promise<FetchableEntity | undefined> {
  const [row] = await queryPrepared<FetchableEntity>(db, `fetchable-${kind}`, FETCHABLE_SQL[kind], [guid])
  return row
}

const FETCHABLE_SQL: Readonly<Record<FetchableKind, string>> = {
  post: `
    select 'post' as record, posts.guid, posts.guid as "postGuid",
      ${authorAsJsonSql('post_author')} as author, ${authorAsJsonSql('post_author')} as "postAuthor"
    from posts
    ${joinPersonAndPodSql('post_author', 'posts.author_id')}
    where posts.guid = $1 and posts.public and post_author.restriction is distinct from 'block'`,
  poll: `
    select 'post' as record, posts.guid, posts.guid as "postGuid",
      ${authorAsJsonSql('post_author')} as author, ${authorAsJsonSql('post_author')} as "postAuthor"
    from polls
    join posts on posts.id = polls.post_id
    ${joinPersonAndPodSql('post_author', 'posts.author_id')}
    where polls.guid = $1 and posts.public and post_author.restriction is distinct from 'block'`,
  comment: `
    select 'comment' as record, comments.guid, posts.guid as "postGuid",
      ${authorAsJsonSql('author')} as author, ${authorAsJsonSql('post_author')} as "postAuthor"
    from comments
    join posts on posts.id = comments.post_id
    ${joinPersonAndPodSql('author', 'comments.author_id')}
    ${joinPersonAndPodSql('post_author', 'posts.author_id')}
    where comments.guid = $1 and posts.public and not comments.hidden
      and author.restriction is distinct from 'block' and post_author.restriction is distinct from 'block'`,
}

function joinPersonAndPodSql(name: string, id: string): string {
  return `join people ${name} on ${name}.id = ${id} left join pods ${name}_pod on ${name}_pod.id = ${name}.pod_id`
}

function authorAsJsonSql(name: string): string {
  return `json_build_object(
        'personId', ${name}.id, 'address', ${name}.address, 'isClosed', ${name}.closed_at is not null,
        'pod', case when ${name}_pod.id is not null then json_build_object(
          'host', ${name}_pod.host, 'port', ${name}_pod.port, 'ssl', ${name}_pod.ssl) end)`
}
