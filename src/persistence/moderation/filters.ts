import type { Knex } from 'knex'
import { queryPreparedRow, queryRows } from '../database/database.js'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'
import type { ContentIds } from './hidden-content.js'

export const FILTER_KINDS = ['word', 'phrase', 'pattern', 'link_host', 'link_prefix', 'tag'] as const
export type FilterKind = (typeof FILTER_KINDS)[number]
export const FILTER_FIELDS = ['post', 'poll', 'comment', 'tag', 'name', 'bio', 'message'] as const
export type FilterField = (typeof FILTER_FIELDS)[number]
export const FILTER_ORIGINS = ['local', 'remote', 'both'] as const
export const FILTER_ACTIONS = ['count', 'flag', 'hide', 'reject'] as const
type FilterAction = (typeof FILTER_ACTIONS)[number]
export const FILTER_STATES = ['trial', 'active', 'off'] as const

/** The value of a filter, the content that it searches, and its effect. */
export interface FilterRule {
  readonly kind: FilterKind
  /** The value in the form in which texts are compared. */
  readonly value: string
  readonly fields: readonly FilterField[]
  readonly origin: (typeof FILTER_ORIGINS)[number]
  /** The filter applies only to people who are known for fewer days. */
  readonly accountAgeDays: number | null
  /** The filter does not apply to people whom a local user follows. */
  readonly exemptFollowed: boolean
  /** The filter applies to private content too; no text of it is kept. */
  readonly isPrivate: boolean
  readonly action: FilterAction
  /** `trial` only counts. */
  readonly state: (typeof FILTER_STATES)[number]
}

export interface StoredFilter extends FilterRule {
  readonly id: number
  readonly version: number
  readonly createdBy: string
  readonly createdAt: Date
  readonly changedAt: Date
}

/** A value that differs after every committed change of a filter. */
export async function readFiltersVersion(db: Knex): Promise<string> {
  const { version } = await queryPreparedRow<{ version: string }>(
    db,
    'filters-version',
    `select concat_ws(' ', count(*), max(id), sum(version)) as version from filters`,
    [],
  )
  return version
}

export async function listUsedFilters(db: Knex): Promise<readonly StoredFilter[]> {
  return db('filters').whereNot({ state: 'off' }).orderBy('id')
}

export interface ListedFilter extends StoredFilter {
  readonly hitsIn30Days: number
}

/** Lists filters, newest first, with their hits of 30 days. */
export async function listFilters(db: Knex, page: IdPage): Promise<ListPage<ListedFilter>> {
  return readIdPage(db('filters').select('filters.*', db.raw(`${SUM_OF_HITS_SQL} as "hitsIn30Days"`)), page)
}

export async function findFilter(db: Knex, id: number): Promise<ListedFilter | undefined> {
  return db('filters')
    .where({ id })
    .first('filters.*', db.raw(`${SUM_OF_HITS_SQL} as "hitsIn30Days"`))
}

const SUM_OF_HITS_SQL = `(
  select coalesce(sum(hits), 0)::integer from filter_days where filter_id = filters.id and day > current_date - 30
)`

/** Locks the filter, so that its version and its rights are those of the change. */
export async function lockFilter(transaction: Knex.Transaction, id: number): Promise<StoredFilter | undefined> {
  return transaction('filters').where({ id }).forUpdate().first()
}

/** Locks the number of filters until the commit. */
export async function lockAndCountFilters(transaction: Knex.Transaction): Promise<number> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtext('filters'))`)
  const [row] = await transaction('filters').count({ count: '*' })
  return Number(row?.count ?? 0)
}

export async function insertFilter(
  transaction: Knex.Transaction,
  { fields, ...rule }: FilterRule,
  { createdBy, at }: { readonly createdBy: string; readonly at: Date },
): Promise<number> {
  const row = { ...rule, fields: [...fields], createdBy, createdAt: at, changedAt: at }
  const [inserted]: readonly { id: number }[] = await transaction('filters').insert(row).returning('id')
  if (inserted === undefined) throw new Error('A filter was inserted and not returned.')
  return inserted.id
}

export async function updateFilter(
  transaction: Knex.Transaction,
  id: number,
  { fields, ...rule }: FilterRule,
  at: Date,
): Promise<void> {
  await transaction('filters')
    .where({ id })
    .update({ ...rule, fields: [...fields], changedAt: at })
    .increment('version', 1)
}

export async function deleteFilter(transaction: Knex.Transaction, id: number): Promise<void> {
  await transaction('filters').where({ id }).delete()
}

/** Deletes a filter that is unchanged since it was added. */
export async function deleteUnchangedFilter(transaction: Knex.Transaction, id: number): Promise<void> {
  await transaction('filters').where({ id, version: 1 }).delete()
}

/** Fields of an author for the conditions of filters. */
export interface FilteredAuthor {
  readonly address: string
  readonly guid: string
  readonly firstSeenAt: Date
  readonly isLocal: boolean
  /** A moderator or admin of this pod. */
  readonly isStaff: boolean
  /** A local user follows the person. */
  readonly isFollowed: boolean
}

export async function findFilteredAuthors(db: Knex, addresses: readonly string[]): Promise<readonly FilteredAuthor[]> {
  return queryRows<FilteredAuthor>(
    db,
    `select
       people.address, people.guid, people.created_at as "firstSeenAt", people.pod_id is null as "isLocal",
       exists (select from users where users.person_id = people.id and users.role is not null) as "isStaff",
       exists (select from contacts where contacts.person_id = people.id and contacts.receiving) as "isFollowed"
     from people where people.address = any(?)`,
    [[...addresses]],
  )
}

export type FilterEffect = 'counted' | 'flagged' | 'hidden' | 'rejected'

export interface NewFilterHit {
  readonly filterId: number
  readonly targetType: 'post' | 'comment' | 'person' | 'message'
  readonly targetGuid: string
  readonly authorAddress: string
  readonly field: FilterField
  /** Null for private content. */
  readonly excerpt: string | null
  readonly isPublic: boolean
  readonly effect: FilterEffect
}

/** Counts hits by filter and day, and keeps those of `kept`. Filters are locked in the order of their ids. */
export async function insertFilterHits(
  db: Knex,
  hits: readonly Pick<NewFilterHit, 'filterId'>[],
  storedHits: readonly NewFilterHit[],
  at: Date,
): Promise<void> {
  await db.raw(
    `with input as (
       select filters.id, count(*) as hits
       from unnest(cast(:filterIds as bigint[])) as input(id) join filters using (id)
       group by filters.id order by filters.id
     ), counted as (
       insert into filter_days (filter_id, day, hits) select id, cast(:at as date), hits from input
       on conflict (filter_id, day) do update set hits = filter_days.hits + excluded.hits
     ), totals as (
       insert into filter_totals (kind, hits)
       select filters.kind, sum(input.hits) from input join filters using (id) group by filters.kind order by filters.kind
       on conflict (kind) do update set hits = filter_totals.hits + excluded.hits
     )
     insert into filter_hits (
       filter_id, at, target_type, target_guid, author_address, field, excerpt, is_public, effect
     )
     select filters.id, :at, kept."targetType", kept."targetGuid", kept."authorAddress", kept.field, kept.excerpt, kept."isPublic", kept.effect
     from json_to_recordset(cast(:kept as json)) as kept(
       "filterId" bigint, "targetType" text, "targetGuid" text, "authorAddress" text, field text, excerpt text, "isPublic" boolean,
       effect text
     )
     join filters on filters.id = kept."filterId"`,
    { at, filterIds: hits.map(({ filterId }) => filterId), kept: JSON.stringify(storedHits) },
  )
}

export interface FilterHit extends Omit<NewFilterHit, 'filterId'> {
  readonly id: number
  readonly at: Date
}

export interface FilterDay {
  readonly day: string
  readonly hits: number
}

/** The hits of 30 days by day, and the latest ones, both newest first. */
export async function readFilterHits(
  db: Knex,
  filterId: number,
  limit: number,
): Promise<{ readonly days: readonly FilterDay[]; readonly latest: readonly FilterHit[] }> {
  const days = await db('filter_days')
    .where({ filterId })
    .whereRaw('day > current_date - 30')
    .orderBy('day', 'desc')
    .select(db.raw(`to_char(day, 'YYYY-MM-DD') as day`), 'hits')
  const latest = await db('filter_hits').where({ filterId }).orderBy('id', 'desc').limit(limit)
  return { days, latest }
}

const IS_REOPENED_SQL = `(
  moderation_cases.target_type = 'person' and moderation_cases.closed_at < :reopenBefore and not moderation_cases.ignore_further
  and position(excluded.text in coalesce(moderation_cases.text, '')) = 0
)`

/**
 * Opens a case for each flagged content, or adds the hit to the history of its case. A case about a person that was closed before
 * `reopenBefore` is opened again for a new profile, unless further reports are ignored: other content does not change. A case of private
 * content has no text. One statement for any number of them. Returns the cases.
 */
export async function createFilterCases(
  transaction: Knex.Transaction,
  flagged: readonly Pick<NewFilterHit, 'targetType' | 'targetGuid' | 'filterId'>[],
  { at, reopenBefore }: { readonly at: Date; readonly reopenBefore: Date },
): Promise<readonly number[]> {
  const rows = await queryRows<{ readonly caseId: number }>(
    transaction,
    `with flagged as (
       select "targetType" as type, "targetGuid" as guid, string_agg(distinct cast("filterId" as text), ', ') as filters
       from json_to_recordset(cast(:flagged as json)) as flagged("targetType" text, "targetGuid" text, "filterId" bigint)
       group by 1, 2
     ), content as (
       select flagged.type, posts.guid, author_id, public, text, null as parent_guid, posts.created_at,
         array(select photos.guid from photos where photos.post_id = posts.id order by photos.position, photos.id) as photo_guids
       from flagged join posts using (guid) where flagged.type = 'post'
       union all
       select flagged.type, comments.guid, comments.author_id, posts.public, comments.text, posts.guid, comments.created_at, '{}'
       from flagged join comments using (guid) join posts on posts.id = comments.post_id where flagged.type = 'comment'
       union all
       select flagged.type, people.guid, people.id, true, concat_ws(e'\\n\\n', nullif(people.name, ''), nullif(profiles.bio, '')), null, people.created_at, '{}'
       from flagged join people using (guid) left join profiles on profiles.person_id = people.id where flagged.type = 'person'
       union all
       select flagged.type, messages.guid, messages.author_id, false, null, conversations.guid, messages.created_at, '{}'
       from flagged join messages using (guid) join conversations on conversations.id = messages.conversation_id where flagged.type = 'message'
     ), cases as (
       insert into moderation_cases (
         kind, target_type, target_guid, author_id, author_guid, author_address, public, text, parent_guid, photo_guids,
         target_created_at, first_reported_at, last_reported_at, changed_at
       )
       select 'filter', type, content.guid, people.id, people.guid, people.address, public, case when public then text end,
         parent_guid, photo_guids, content.created_at, :at, :at, :at
       from content join people on people.id = author_id
       order by type, content.guid
       on conflict (target_type, target_guid) do update set
         last_reported_at = excluded.last_reported_at,
         state = case when ${IS_REOPENED_SQL} then 'open' else moderation_cases.state end,
         text = case
           when ${IS_REOPENED_SQL} or moderation_cases.closed_at is null and moderation_cases.text is null then excluded.text
           else moderation_cases.text end,
         changed_at = case when ${IS_REOPENED_SQL} then excluded.changed_at else moderation_cases.changed_at end,
         closed_at = case when ${IS_REOPENED_SQL} then null else moderation_cases.closed_at end
       -- An open case that has changed just now, and is older, is one that was opened again.
       returning id, target_type, target_guid, closed_at is null and changed_at = :at and first_reported_at < :at as reopened
     )
     insert into moderation_case_events (case_id, at, event, text)
     select cases.id, :at, events.event, case events.event when 'reported' then 'filter ' || flagged.filters end
     from cases
     join flagged on flagged.type = cases.target_type and flagged.guid = cases.target_guid
     join (values (1, 'reported'), (2, 'reopened')) as events(place, event) on events.event = 'reported' or cases.reopened
     order by cases.id, events.place
     returning case_id as "caseId"`,
    { flagged: JSON.stringify(flagged), at, reopenBefore },
  )
  return [...new Set(rows.map(({ caseId }) => caseId))]
}

/** Deletes all hits but the latest of each filter, and days that are over. */
export async function pruneFilterHits(db: Knex, kept: number): Promise<void> {
  await db.raw(
    `delete from filter_hits using (
       select filters.id as filter_id, (
         select id from filter_hits where filter_id = filters.id order by id desc offset ? limit 1
       ) as last from filters
     ) as surplus
     where filter_hits.filter_id = surplus.filter_id and filter_hits.id <= surplus.last`,
    [kept],
  )
  await db.raw(`delete from filter_hits where at < now() - interval '30 days'`)
  await db.raw('delete from filter_days where day <= current_date - 30')
}

/** The posts and comments with these guids. */
export async function findContentIds(
  db: Knex,
  guids: { readonly posts: readonly string[]; readonly comments: readonly string[] },
): Promise<ContentIds> {
  const rows = await queryRows<{ readonly type: 'post' | 'comment'; readonly id: number }>(
    db,
    `select 'post' as type, id from posts where guid = any(cast(:posts as text[]))
     union all
     select 'comment', id from comments where guid = any(cast(:comments as text[]))
     order by 1, 2`,
    { posts: [...guids.posts], comments: [...guids.comments] },
  )
  const idsOf = (wanted: 'post' | 'comment') => rows.flatMap(({ type, id }) => (type === wanted ? [id] : []))
  return { postIds: idsOf('post'), commentIds: idsOf('comment') }
}

/** Content that is hidden because the filter was applied to stored content. */
export async function findHiddenByFilter(db: Knex, filterId: number): Promise<ContentIds> {
  const rows: readonly { postId: number | null; commentId: number | null }[] = await db('hidden_content')
    .join('moderation_actions as actions', 'actions.id', 'hidden_content.actionId')
    .where({ 'actions.kind': 'filter.apply', 'actions.targetType': 'filter', 'actions.targetGuid': String(filterId) })
    .whereNull('actions.undoneById')
    .select('postId', 'commentId')
  return {
    postIds: rows.flatMap(({ postId }) => postId ?? []),
    commentIds: rows.flatMap(({ commentId }) => commentId ?? []),
  }
}

/** The existing posts and comments among these ids, by type and guid. */
export async function findContentTargets(
  db: Knex,
  { postIds, commentIds }: ContentIds,
): Promise<readonly { readonly type: 'post' | 'comment'; readonly guid: string }[]> {
  return queryRows<{ readonly type: 'post' | 'comment'; readonly guid: string }>(
    db,
    `select 'post' as type, guid from posts where id = any(:postIds)
     union all
     select 'comment', guid from comments where id = any(:commentIds)`,
    { postIds: [...postIds], commentIds: [...commentIds] },
  )
}
