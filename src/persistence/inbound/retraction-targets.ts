import type { Knex } from 'knex'
import {
  isRelayableKind,
  namesInRetractions,
  RETRACTED_RECORDS,
  type RelayableKind,
} from '../../protocol/entities/registry.js'
import { queryPrepared } from '../database/database.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { RECORD_TABLES } from '../sql/record-tables.js'
import { rowByRowSql } from '../sql/row-by-row.js'

/** The stored entity that a retraction refers to. */
export interface RetractionTarget {
  readonly id: number
  readonly authorId: number
  readonly author: string
  /** The post of a comment, like or vote. */
  readonly threadPost?:
    | {
        readonly postId: number
        readonly public: boolean
        readonly authorId: number
        readonly author: string
        readonly local: boolean
      }
    | undefined
}

interface TargetRow extends RetractionTarget {
  readonly type: string
  readonly guid: string
}

/** Finds stored targets, keyed by `<type> <guid>` with the type names of retractions. */
export async function findRetractionTargets(
  db: Knex,
  targets: readonly { readonly type: string; readonly guid: string }[],
): Promise<ReadonlyMap<string, RetractionTarget>> {
  if (targets.length === 0) return new Map()
  const values = [targets.map(({ type }) => type), targets.map(({ guid }) => guid)]
  const rows = await queryPrepared<TargetRow>(db, 'retraction-targets', TARGETS_SQL, values)
  return new Map(
    rows.map(({ threadPost, ...row }) => [`${row.type} ${row.guid}`, { ...row, threadPost: threadPost ?? undefined }]),
  )
}

/**
 * Returns the guids of relayables younger than 12 hours. Their outbound message is certainly still stored if there ever was one:
 * messages without deliveries are kept for a day.
 */
export async function findRecentRelayables(
  db: Knex,
  kind: RelayableKind,
  ids: readonly number[],
): Promise<readonly string[]> {
  return db(RECORD_TABLES[kind].table)
    .whereIn('id', [...ids])
    .where('createdAt', '>', db.raw(`now() - interval '12 hours'`))
    .pluck('guid')
}

/** One part of the statement for each kind of record. Only relayables are also retracted by the author of their post. */
const selectStored = [...new Set(Object.values(RETRACTED_RECORDS))].map((kind) => {
  const { table, author, post } = RECORD_TABLES[kind]
  const names = namesInRetractions(kind).map((name) => `'${name}'`)
  return `
    select requested.type, requested.guid, ${table}.id, ${author} as author_id, ${isRelayableKind(kind) ? post : 'null::bigint'} as post_id
    from requested join ${table} using (guid)
    where requested.type in (${names.join(', ')})`
})

const TARGETS_SQL = `
  with requested as (
    select distinct type, guid from unnest(${opaqueParam('$1', 'text[]')}, $2::text[]) as requested (type, guid)
  ), records as (
    ${selectStored.join('\n    union all')}
    union all
    select requested.type, requested.guid, people.id, people.id, null from requested join people using (guid) where requested.type = 'Person'
  )
  select
    records.type, records.guid, records.id, records.author_id as "authorId", authors.address as author,
    case when thread_posts.id is not null then json_build_object(
      'postId', thread_posts.id, 'public', coalesce(thread_posts.public_before_hiding, thread_posts.public), 'authorId', thread_posts.author_id,
      'author', thread_authors.address, 'local', thread_authors.pod_id is null
    ) end as "threadPost"
  from records
  ${rowByRowSql('people', 'people.id = records.author_id', 'authors')}
  left join lateral (
    select * from posts where posts.id = records.post_id and posts.author_id is not null offset 0
  ) as thread_posts on true
  left join lateral (select * from people where people.id = thread_posts.author_id offset 0) as thread_authors on true`
