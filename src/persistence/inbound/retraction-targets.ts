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
    select wanted.type, wanted.guid, ${table}.id, ${author} as author_id, ${isRelayableKind(kind) ? post : 'null::bigint'} as post_id
    from wanted join ${table} using (guid)
    where wanted.type in (${names.join(', ')})`
})

const TARGETS_SQL = `
  with wanted as (
    select distinct type, guid from unnest(${opaqueParam('$1', 'text[]')}, $2::text[]) as wanted (type, guid)
  ), found as (
    ${selectStored.join('\n    union all')}
    union all
    select wanted.type, wanted.guid, people.id, people.id, null from wanted join people using (guid) where wanted.type = 'Person'
  )
  select
    found.type, found.guid, found.id, found.author_id as "authorId", authors.address as author,
    case when roots.id is not null then json_build_object(
      'postId', roots.id, 'public', coalesce(roots.public_before_hiding, roots.public), 'authorId', roots.author_id,
      'author', root_authors.address, 'local', root_authors.pod_id is null
    ) end as "threadPost"
  from found
  ${rowByRowSql('people', 'people.id = found.author_id', 'authors')}
  left join lateral (
    select * from posts where posts.id = found.post_id and posts.author_id is not null offset 0
  ) as roots on true
  left join lateral (select * from people where people.id = roots.author_id offset 0) as root_authors on true`
