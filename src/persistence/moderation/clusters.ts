import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'
import type { ContentIds } from './hidden-content.js'

/** `cleaning` and `restoring`: a cleaning or its undo is in progress. */
export const CLUSTER_STATES = ['open', 'cleaning', 'cleaned', 'restoring', 'dismissed'] as const

export type ClusterState = (typeof CLUSTER_STATES)[number]

export interface ClusterRow {
  readonly id: number
  readonly key: string
  readonly kind: 'text' | 'link' | 'mentions' | 'photo'
  readonly label: string
  readonly state: ClusterState
  readonly caseId: number | null
  readonly firstAt: Date
  readonly lastAt: Date
}

/** The counts are those of its last growth. */
export interface ListedCluster extends ClusterRow {
  readonly itemCount: number
  readonly authorCount: number
  readonly podCount: number
}

/** Lists clusters, newest first. */
export async function listClusters(
  db: Knex,
  { states }: { readonly states?: readonly ClusterRow['state'][] | undefined },
  page: IdPage,
): Promise<ListPage<ListedCluster>> {
  const query = db('clusters').select('*')
  if (states !== undefined && states.length > 0) query.whereIn('state', [...states])
  return readIdPage(query, page)
}

export async function findCluster(db: Knex, id: number): Promise<ListedCluster | undefined> {
  return db('clusters').where({ id }).first()
}

export async function lockCluster(transaction: Knex.Transaction, id: number): Promise<ClusterRow | undefined> {
  return transaction('clusters').where({ id }).forUpdate().first()
}

export async function changeClusterState(
  transaction: Knex.Transaction,
  id: number,
  state: ClusterRow['state'],
): Promise<void> {
  await transaction('clusters').where({ id }).update({ state })
}

/** Clusters with these keys that new content joins: open ones, and those that were dismissed and have grown since a time. */
export async function findGrowingClusters(
  db: Knex,
  keys: readonly string[],
  { dismissedSince }: { readonly dismissedSince: Date },
): Promise<readonly ClusterRow[]> {
  return db('clusters')
    .whereIn('key', [...keys])
    .whereRaw(`(state = 'open' or state = 'dismissed' and last_at >= ?)`, [dismissedSince])
}

/** Opens a cluster with its case, or returns the open one with this key, without a case. */
export async function createCluster(
  transaction: Knex.Transaction,
  cluster: Pick<ClusterRow, 'key' | 'kind' | 'label'>,
  at: Date,
): Promise<{ readonly id: number; readonly caseId: number | null }> {
  const [opened] = await transaction('clusters')
    .insert({ ...cluster, firstAt: at, lastAt: at })
    .onConflict(transaction.raw(`(key) where state = 'open'`))
    .ignore()
    .returning('id')
  if (opened === undefined) {
    const { id } = await transaction('clusters').where({ key: cluster.key, state: 'open' }).first('id')
    return { id, caseId: null }
  }
  return queryRow<{ readonly id: number; readonly caseId: number | null }>(
    transaction,
    `with opened as (
       insert into moderation_cases (kind, target_type, target_guid, public, text, target_created_at, first_reported_at, last_reported_at, changed_at)
       values ('cluster', 'cluster', :guid, true, :label, :at, :at, :at, :at) returning id
     ), noted as (
       insert into moderation_case_events (case_id, at, event) select id, :at, 'reported' from opened
     )
     update clusters set case_id = opened.id from opened where clusters.id = :id returning clusters.id, case_id as "caseId"`,
    { guid: String(opened.id), label: `${cluster.kind}: ${cluster.label}`, at, id: opened.id },
  )
}

/** Content with a key since a time that is in no cluster. */
export async function countUngroupedContent(transaction: Knex.Transaction, key: string, since: Date): Promise<number> {
  const { count } = await queryRow<{ readonly count: number }>(
    transaction,
    `select count(*)::integer as count from content_keys
     where key = ? and at >= ? and not exists (
       select from cluster_items as items
       where items.type = content_keys.type and items.content_id = content_keys.content_id
     )`,
    [key, since],
  )
  return count
}

export interface NewClusterItem {
  readonly clusterId: number
  readonly type: 'post' | 'comment'
  readonly contentId: number
}

export function groupContentIds(items: readonly Pick<NewClusterItem, 'type' | 'contentId'>[]): ContentIds {
  const idsOf = (wanted: NewClusterItem['type']) =>
    items.flatMap(({ type, contentId }) => (type === wanted ? [contentId] : []))
  return { postIds: idsOf('post'), commentIds: idsOf('comment') }
}

/** Adds all content with the key of each cluster since a time, and counts again. Returns the new items. */
export async function addClusterItems(
  transaction: Knex.Transaction,
  clusterIds: readonly number[],
  growth: ClusterGrowth,
): Promise<readonly NewClusterItem[]> {
  const addedItems = await insertClusterItems(transaction, clusterIds, growth)
  const grown = [...new Set(addedItems.map(({ clusterId }) => clusterId))]
  if (grown.length > 0) await transaction.raw(COUNT_ITEMS_SQL, [grown])
  return addedItems
}

interface ClusterGrowth {
  readonly since: Date
  readonly at: Date
  readonly maxItems: number
}

/**
 * Counted when a cluster grows, not when it is shown: it may have 20 000 items. Grouped by author first, so that people are looked up
 * once each, by id.
 */
const COUNT_ITEMS_SQL = `
  update clusters set (item_count, author_count, pod_count) = (
    select coalesce(sum(items), 0), count(*), count(distinct coalesce(people.pod_id, 0))
    from (
      select author_id, count(*) as items from cluster_items where cluster_id = clusters.id group by author_id
    ) as authors join people on people.id = authors.author_id
  )
  where id = any(?)`

async function insertClusterItems(
  transaction: Knex.Transaction,
  clusterIds: readonly number[],
  { since, at, maxItems }: ClusterGrowth,
): Promise<readonly NewClusterItem[]> {
  return queryRows<NewClusterItem>(
    transaction,
    `with added as (
       insert into cluster_items (cluster_id, type, content_id, author_id, at)
       select clusters.id, content_keys.type, content_id, author_id, content_keys.at
       from clusters join content_keys using (key)
       where clusters.id = any(cast(:ids as bigint[])) and content_keys.at >= :since and content_keys.type <> 'conversation'
         and exists (select from people where people.id = author_id)
         and not exists (
           select from clusters as cleaned join cluster_items as items on items.cluster_id = cleaned.id
           where cleaned.key = content_keys.key and cleaned.state in ('cleaning', 'cleaned', 'restoring')
             and items.type = content_keys.type and items.content_id = content_keys.content_id
         )
         and clusters.item_count < :maxItems
       on conflict do nothing
       returning cluster_id as "clusterId", type, content_id as "contentId"
     ), grown as (
       update clusters set last_at = greatest(last_at, :at) where id in (select "clusterId" from added)
     ), noted as (
       update moderation_cases set last_reported_at = :at
       where id in (select case_id from clusters where id in (select "clusterId" from added))
     )
     select * from added`,
    { ids: [...clusterIds], since, at, maxItems },
  )
}

/** Leaves out items of moderators and admins, and of people whom a local user follows. */
export async function excludeKnownAuthors(
  db: Knex,
  items: readonly NewClusterItem[],
): Promise<readonly NewClusterItem[]> {
  return queryRows<NewClusterItem>(
    db,
    `select input."clusterId", input.type, input."contentId"
     from json_to_recordset(?::json) as input("clusterId" bigint, type text, "contentId" bigint)
     join cluster_items as items
       on items.cluster_id = input."clusterId" and items.type = input.type and items.content_id = input."contentId"
     where not exists (select from users where users.person_id = items.author_id and users.role is not null)
       and not exists (select from contacts where contacts.person_id = items.author_id and contacts.receiving)`,
    [JSON.stringify(items)],
  )
}

/** An author in a cluster, with the fields that decide whether an action on them is proposed. */
export interface ClusterAuthor {
  readonly id: number
  readonly guid: string
  readonly address: string
  readonly name: string
  readonly isLocal: boolean
  /** A moderator or admin of this pod; a cleaning does not restrict them. */
  readonly isStaff: boolean
  readonly firstSeenAt: Date
  readonly isFollowed: boolean
  readonly items: number
}

export async function listClusterAuthors(
  db: Knex,
  clusterId: number,
  limit: number,
): Promise<readonly ClusterAuthor[]> {
  return queryRows<ClusterAuthor>(
    db,
    `select people.id, people.guid, people.address, people.name, people.pod_id is null as "isLocal",
       exists (select from users where users.person_id = people.id and users.role is not null) as "isStaff",
       people.created_at as "firstSeenAt",
       exists (select from contacts where contacts.person_id = people.id and contacts.receiving) as "isFollowed",
       counted.items::integer
     from (
       select author_id, count(*) as items from cluster_items where cluster_id = ? group by author_id
       order by items desc, author_id limit ?
     ) as counted
     join people on people.id = counted.author_id
     order by counted.items desc, people.id`,
    [clusterId, limit],
  )
}

/** A post or comment of a cluster that is still stored. */
export interface ClusterItem {
  readonly type: 'post' | 'comment'
  readonly contentId: number
  readonly guid: string
  readonly authorId: number
  readonly authorGuid: string
  readonly author: string
  /** A moderator or admin of this pod; a cleaning leaves their content alone. */
  readonly isStaff: boolean
  readonly isHidden: boolean
  readonly text: string
  readonly at: Date
  /** A local person may retract it: its author, or the author of its post. */
  readonly isRetractable: boolean
}

/** Extra rows that are read because the newest items may have been deleted. */
const DELETED_ITEMS_SKIPPED = 1_000

/** Items of a cluster, newest first. Index `cluster_items_newest`: only the returned items are read. */
export async function listClusterItems(db: Knex, clusterId: number, limit: number): Promise<readonly ClusterItem[]> {
  return queryRows<ClusterItem>(
    db,
    `select items.type, items.content_id as "contentId", coalesce(comments.guid, posts.guid) as guid, items.author_id as "authorId",
       people.guid as "authorGuid", people.address as author,
       exists (select from users where users.person_id = people.id and users.role is not null) as "isStaff",
       case items.type when 'post' then posts.public_before_hiding is not null else comments.hidden end as "isHidden",
       coalesce(comments.text, posts.text) as text, items.at,
       people.pod_id is null or post_authors.pod_id is null as "isRetractable"
     from (
       select * from cluster_items where cluster_id = :clusterId
       order by at desc, type, content_id desc limit :candidates
     ) as items
     join people on people.id = items.author_id
     left join comments on items.type = 'comment' and comments.id = items.content_id
     join posts on posts.id = case items.type when 'post' then items.content_id else comments.post_id end
     join people as post_authors on post_authors.id = posts.author_id
     order by items.at desc, items.type, items.content_id desc limit :limit`,
    { clusterId, candidates: limit + DELETED_ITEMS_SKIPPED, limit },
  )
}

/** A place in the items of a cluster, in the order of its primary key. */
export interface ClusterPosition {
  readonly type: 'post' | 'comment'
  readonly contentId: number
}

/** An item that a cleaning may hide or retract. */
export interface CleanableItem extends ClusterPosition {
  readonly guid: string
  readonly authorId: number
  readonly isHidden: boolean
  readonly at: Date
  /** A local person may retract it: its author, or the author of its post. */
  readonly isRetractable: boolean
}

interface CleanablePage {
  /** Guids of items and people that are left out. */
  readonly except: readonly string[]
  readonly after?: ClusterPosition | undefined
  readonly limit: number
}

/** Items of a cluster that are still stored, without those of moderators and admins, in the order of the primary key. No text is read. */
export async function listCleanableItems(
  db: Knex,
  clusterId: number,
  { except, after, limit }: CleanablePage,
): Promise<readonly CleanableItem[]> {
  return queryRows<CleanableItem>(
    db,
    `select * from (
       select items.type, items.content_id as "contentId", coalesce(comments.guid, posts.guid) as guid, items.author_id as "authorId",
         case items.type when 'post' then posts.public_before_hiding is not null else comments.hidden end as "isHidden",
         items.at, people.pod_id is null or post_authors.pod_id is null as "isRetractable"
       from cluster_items as items
       join people on people.id = items.author_id
       left join comments on items.type = 'comment' and comments.id = items.content_id
       join posts on posts.id = case items.type when 'post' then items.content_id else comments.post_id end
       join people as post_authors on post_authors.id = posts.author_id
       where items.cluster_id = :clusterId and (items.type, items.content_id) > (:afterType, cast(:afterId as bigint))
         and people.guid <> all(cast(:except as text[]))
         and not exists (select from users where users.person_id = people.id and users.role is not null)
     ) as found
     where guid <> all(cast(:except as text[]))
     order by type, "contentId" limit :limit`,
    { clusterId, except: [...except], afterType: after?.type ?? '', afterId: after?.contentId ?? 0, limit },
  )
}

/** Returns the given people who have an account on this pod. */
export async function findLocalAuthors(
  db: Knex,
  ids: readonly number[],
): Promise<readonly { readonly id: number; readonly address: string }[]> {
  return db('people')
    .whereIn('id', [...ids])
    .whereNull('podId')
    .orderBy('id')
    .select('id', 'address')
}

/** Locks the cluster of a case: before the case, in the order of all changes of both. */
export async function lockClusterOfCase(
  transaction: Knex.Transaction,
  caseId: number,
): Promise<ClusterRow | undefined> {
  return transaction('clusters').where({ caseId }).forUpdate().first()
}

/** Closes the case of a cluster, unless a moderator has closed it. */
export async function closeCaseOfCluster(
  transaction: Knex.Transaction,
  { caseId }: Pick<ClusterRow, 'caseId'>,
  {
    state,
    actorId,
    at,
  }: { readonly state: 'resolved' | 'dismissed'; readonly actorId: number | null; readonly at: Date },
): Promise<void> {
  if (caseId === null) return
  await transaction.raw(
    `with closed as (
       update moderation_cases set state = :state, closed_at = :at, changed_at = :at, taken_by_id = null, taken_at = null
       where id = :caseId and closed_at is null returning id
     )
     insert into moderation_case_events (case_id, at, actor_id, event) select id, :at, :actorId, :state from closed`,
    { caseId, state, actorId, at },
  )
}

/** Opens the case of a cluster again, if it is closed. */
export async function reopenCaseOfCluster(
  transaction: Knex.Transaction,
  { caseId }: Pick<ClusterRow, 'caseId'>,
  at: Date,
): Promise<void> {
  if (caseId === null) return
  await transaction.raw(
    `with opened as (
       update moderation_cases set state = 'open', closed_at = null, changed_at = :at, ignore_further = false
       where id = :caseId and closed_at is not null returning id
     )
     insert into moderation_case_events (case_id, at, event) select id, :at, 'reopened' from opened`,
    { caseId, at },
  )
}

/** The open cluster with this key. */
export async function findOpenCluster(
  transaction: Knex.Transaction,
  key: string,
): Promise<Pick<ClusterRow, 'id'> | undefined> {
  return transaction('clusters').where({ key, state: 'open' }).first('id')
}
