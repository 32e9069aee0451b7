import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { rowByRow } from '../sql/row-by-row.js'

/** The stored entity that a retraction refers to. */
export interface RetractionTarget {
  readonly id: number
  readonly authorId: number
  readonly author: string
  /** For comments, likes and votes: their post. */
  readonly root?:
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
  const rows = await queryPrepared<TargetRow>(db, 'retraction-targets', selectTargets, values)
  return new Map(rows.map(({ root, ...row }) => [`${row.type} ${row.guid}`, { ...row, root: root ?? undefined }]))
}

const TABLES = { comment: 'comments', like: 'likes', poll_participation: 'poll_participations' } as const

/**
 * Returns the guids of relayables younger than 12 hours. Their outbound message is certainly still stored if there ever was one:
 * messages without deliveries are kept for a day.
 */
export async function findRecentRelayables(
  db: Knex,
  kind: keyof typeof TABLES,
  ids: readonly number[],
): Promise<readonly string[]> {
  return db(TABLES[kind])
    .whereIn('id', [...ids])
    .where('createdAt', '>', db.raw(`now() - interval '12 hours'`))
    .pluck('guid')
}

/** Tables with columns `guid` and `author_id`, and the type names that retractions use for them. */
const alone = {
  posts: ['Post', 'StatusMessage', 'Reshare'],
  photos: ['Photo'],
  participations: ['Participation'],
  conversations: ['Conversation'],
} as const

const withoutRoot = Object.entries(alone).map(
  ([table, types]) => `
  select wanted.type, wanted.guid, ${table}.id, author_id, null::bigint as post_id
  from wanted join ${table} using (guid)
  where wanted.type in (${types.map((type) => `'${type}'`).join(', ')})`,
)

const selectTargets = `
  with wanted as (
    select distinct type, guid from unnest(${opaqueParam('$1', 'text[]')}, $2::text[]) as wanted (type, guid)
  ), found as (
    ${withoutRoot.join('\n  union all')}
    union all
    select wanted.type, wanted.guid, people.id, people.id, null from wanted join people using (guid) where wanted.type = 'Person'
    union all
    select wanted.type, wanted.guid, polls.id, posts.author_id, null
    from wanted join polls using (guid) join posts on posts.id = polls.post_id
    where wanted.type = 'Poll'
    union all
    select wanted.type, wanted.guid, comments.id, author_id, post_id from wanted join comments using (guid) where wanted.type = 'Comment'
    union all
    select wanted.type, wanted.guid, likes.id, likes.author_id, coalesce(likes.post_id, comments.post_id)
    from wanted join likes using (guid) left join comments on comments.id = likes.comment_id
    where wanted.type = 'Like'
    union all
    select wanted.type, wanted.guid, poll_participations.id, poll_participations.author_id, polls.post_id
    from wanted join poll_participations using (guid) join polls on polls.id = poll_participations.poll_id
    where wanted.type = 'PollParticipation'
  )
  select
    found.type, found.guid, found.id, found.author_id as "authorId", authors.address as author,
    case when roots.id is not null then json_build_object(
      'postId', roots.id, 'public', coalesce(roots.public_before_hiding, roots.public), 'authorId', roots.author_id,
      'author', root_authors.address, 'local', root_authors.pod_id is null
    ) end as root
  from found
  ${rowByRow('people', 'people.id = found.author_id', 'authors')}
  left join lateral (
    select * from posts where posts.id = found.post_id and posts.author_id is not null offset 0
  ) as roots on true
  left join lateral (select * from people where people.id = roots.author_id offset 0) as root_authors on true`
