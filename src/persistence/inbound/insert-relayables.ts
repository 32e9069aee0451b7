import type { Knex } from 'knex'
import type { RelayableKind } from '../../protocol/entities/registry.js'
import { queryPrepared } from '../database/database.js'
import type { SignedElements } from '../models/comment.js'
import { isRetractedSql } from '../models/tombstone.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { RECORD_TABLES } from '../sql/record-tables.js'
import { rowsAsColumns } from '../sql/rows-as-columns.js'

/** A received relayable, with the address of its author and the guid of its parent. */
interface ReceivedRelayable {
  readonly guid: string
  readonly author: string
  readonly parent: string
  /** Signature and elements for relaying; undefined if this pod does not relay it. */
  readonly signed?: { readonly signature: string | undefined; readonly elements: SignedElements } | undefined
  readonly createdAt: Date
  /** The id of the request that brought it. */
  readonly trace?: string | undefined
}

export interface ReceivedComment extends ReceivedRelayable {
  readonly text: string
}

export interface ReceivedLike extends ReceivedRelayable {
  readonly parentType: 'Post' | 'Comment'
  readonly positive: boolean
}

export interface ReceivedVote extends ReceivedRelayable {
  readonly answer: string
}

/** The result of an insertion. */
export interface RelayableOutcome {
  readonly guid: string
  /** Null: it was not inserted. */
  readonly id: number | null
  /** Author of the stored entity with this guid; null: there was none. */
  readonly existingAuthor: string | null
  /** The post of the relayable; null: its parent is not stored. */
  readonly threadPost: {
    readonly isLocal: boolean
    readonly createdAt: string
    readonly isPublic: boolean
    /** The author of the post blocks the author of the relayable; it is not inserted. */
    readonly isAuthorBlocked: boolean
    /** The poll has no such answer; the vote is not inserted. */
    readonly isAnswerUnknown: boolean
  } | null
}

/** Inserts comments with one statement and returns the result of each. Counters are raised by `raiseCounts`. */
export async function insertComments(transaction: Knex.Transaction, comments: readonly ReceivedComment[]) {
  return insertRelayables(transaction, comments, {
    name: 'new-comments',
    text: NEW_COMMENTS_SQL,
    ownColumns: rowsAsColumns(comments, ['text']),
  })
}

/** Inserts likes, as `insertComments`. */
export async function insertLikes(transaction: Knex.Transaction, likes: readonly ReceivedLike[]) {
  return insertRelayables(transaction, likes, {
    name: 'new-likes',
    text: NEW_LIKES_SQL,
    ownColumns: rowsAsColumns(likes, ['parentType', 'positive']),
  })
}

/** Inserts votes, as `insertComments`. */
export async function insertVotes(transaction: Knex.Transaction, votes: readonly ReceivedVote[]) {
  return insertRelayables(transaction, votes, {
    name: 'new-votes',
    text: NEW_VOTES_SQL,
    ownColumns: rowsAsColumns(votes, ['answer']),
  })
}

interface RelayableStatement {
  readonly name: string
  readonly text: string
  /** The parameters that only this kind of relayable has. */
  readonly ownColumns: readonly unknown[]
}

async function insertRelayables(
  transaction: Knex.Transaction,
  relayables: readonly ReceivedRelayable[],
  { name, text, ownColumns }: RelayableStatement,
): Promise<readonly RelayableOutcome[]> {
  return queryPrepared<RelayableOutcome>(transaction, name, text, [
    ...rowsAsColumns(relayables, ['guid', 'author', 'parent', 'createdAt']),
    ...signatureColumns(relayables),
    relayables.map(({ trace }) => trace ?? null),
    ...ownColumns,
  ])
}

/** Most batches store no signature: then two empty arrays are sent, which `unnest` fills with nulls. */
function signatureColumns(relayables: readonly ReceivedRelayable[]): readonly (readonly unknown[])[] {
  if (relayables.every(({ signed }) => signed === undefined)) return [[], []]
  return [
    relayables.map(({ signed }) => signed?.signature),
    relayables.map(({ signed }) => signed && JSON.stringify(signed.elements)),
  ]
}

interface RelayableKindSql {
  readonly kind: RelayableKind
  /** Parameters that only this kind has, with their types. */
  readonly inputTypes: Readonly<Record<string, 'text' | 'boolean'>>
  /** The target as columns, and the joins from the target to `thread_posts`. */
  readonly columns: string
  readonly joins: string
}

/**
 * CTEs `input` (the parameters as rows) and `resolved` (rows with ids of author and post, and with the conditions that prevent an
 * insertion: blocks, missing answers and tombstones).
 */
function resolvedSql({ kind, inputTypes, columns, joins }: RelayableKindSql): string {
  const parametersOfKind = Object.values(inputTypes).map((type, index) => `$${8 + index}::${type}[]`)
  return `
  with input as (
    select * from unnest(
      ${opaqueParam('$1', 'text[]')}, $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::uuid[], ${parametersOfKind.join(', ')}
    ) as row(guid, author, parent, created_at, signature, elements, trace_id, ${Object.keys(inputTypes).join(', ')})
  ), resolved as (
    select
      input.*,
      people.id as author_id,
      ${columns},
      thread_posts.created_at as thread_created_at,
      thread_posts.public as thread_public,
      owners.pod_id is null as local,
      exists (
        select from blocks join users on users.id = blocks.user_id
        where users.person_id = thread_posts.author_id and blocks.person_id = people.id
      ) as is_author_blocked,
      ${isRetractedSql(kind, 'input.guid', ['people.id', 'thread_posts.author_id'])} as is_retracted
    from input
    join people on people.address = input.author
    ${joins}
    join people as owners on owners.id = thread_posts.author_id
  )`
}

function outcomesSql(kind: RelayableKind): string {
  const { table } = RECORD_TABLES[kind]
  return `
  select
    input.guid,
    inserted.id,
    case when inserted.id is null then (
      select people.address from ${table} join people on people.id = author_id where ${table}.guid = input.guid
    ) end as "existingAuthor",
    case when resolved.guid is not null then json_build_object(
      'isLocal', resolved.local, 'createdAt', resolved.thread_created_at, 'isPublic', resolved.thread_public,
      'isAuthorBlocked', resolved.is_author_blocked, 'isAnswerUnknown', resolved.is_answer_unknown
    ) end as "threadPost"
  from input
  left join resolved on resolved.guid = input.guid
  left join inserted on inserted.guid = input.guid`
}

const IS_INSERTABLE_SQL = `not is_author_blocked and not is_answer_unknown and not is_retracted`

const SIGNATURE_IF_LOCAL_SQL = `case when local then signature end, case when local then elements::jsonb end`

/**
 * Likes and votes are inserted in the order of their second unique key, comments by guid: two batches cannot deadlock. The caller locks
 * the guids.
 */
const NEW_COMMENTS_SQL = `
  ${resolvedSql({
    kind: 'comment',
    inputTypes: { text: 'text' },
    columns: 'thread_posts.id as post_id, false as is_answer_unknown',
    joins: 'join posts as thread_posts on thread_posts.guid = input.parent',
  })}, inserted as (
    insert into comments (guid, post_id, author_id, text, author_signature, signed_elements, trace_id, created_at)
    select guid, post_id, author_id, text, ${SIGNATURE_IF_LOCAL_SQL}, trace_id, created_at
    from resolved where ${IS_INSERTABLE_SQL} order by guid
    on conflict do nothing
    returning id, guid
  )
  ${outcomesSql('comment')}`

const NEW_LIKES_SQL = `
  ${resolvedSql({
    kind: 'like',
    inputTypes: { parent_type: 'text', positive: 'boolean' },
    columns: `case when parent_type = 'Post' then thread_posts.id end as post_id, thread_posts.comment_id, false as is_answer_unknown`,
    joins: `
    cross join lateral (
      select id, author_id, created_at, public, null::bigint as comment_id from posts
      where input.parent_type = 'Post' and guid = input.parent
      union all
      select posts.id, posts.author_id, posts.created_at, posts.public, comments.id
      from comments join posts on posts.id = comments.post_id
      where input.parent_type = 'Comment' and comments.guid = input.parent
    ) as thread_posts`,
  })}, inserted as (
    insert into likes (
      guid, author_id, post_id, comment_id, positive, author_signature, signed_elements, trace_id, created_at
    )
    select guid, author_id, post_id, comment_id, positive, ${SIGNATURE_IF_LOCAL_SQL}, trace_id, created_at
    from resolved where ${IS_INSERTABLE_SQL} order by post_id, comment_id, author_id
    on conflict do nothing
    returning id, guid
  )
  ${outcomesSql('like')}`

const NEW_VOTES_SQL = `
  ${resolvedSql({
    kind: 'poll_participation',
    inputTypes: { answer: 'text' },
    columns: 'polls.id as poll_id, poll_answers.id as poll_answer_id, poll_answers.id is null as is_answer_unknown',
    joins: `
    join polls on polls.guid = input.parent
    left join poll_answers on poll_answers.poll_id = polls.id and poll_answers.guid = input.answer
    join posts as thread_posts on thread_posts.id = polls.post_id`,
  })}, inserted as (
    insert into poll_participations (
      guid, poll_id, poll_answer_id, author_id, author_signature, signed_elements, trace_id, created_at
    )
    select guid, poll_id, poll_answer_id, author_id, ${SIGNATURE_IF_LOCAL_SQL}, trace_id, created_at
    from resolved where ${IS_INSERTABLE_SQL} order by poll_id, author_id
    on conflict do nothing
    returning id, guid
  )
  ${outcomesSql('poll_participation')}`
