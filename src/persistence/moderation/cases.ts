import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'
import { PEOPLE_NAMED_SQL } from './people-records.js'

export const CASE_TARGETS = ['post', 'comment', 'person', 'message', 'cluster'] as const
type CaseTargetType = (typeof CASE_TARGETS)[number]
export const CASE_STATES = ['open', 'taken', 'resolved', 'dismissed'] as const
export type CaseState = (typeof CASE_STATES)[number]
export type CaseEventName =
  | 'reported'
  | 'taken'
  | 'released'
  | 'noted'
  | 'action'
  | 'undone'
  | 'resolved'
  | 'dismissed'
  | 'reopened'
  | 'forwarded'
  | 'target_deleted'

/** The reported person, post or comment, as it was at the report. */
export interface CaseSnapshot {
  readonly targetType: CaseTargetType
  readonly targetGuid: string
  readonly authorId: number
  readonly authorGuid: string
  readonly authorAddress: string
  readonly public: boolean
  readonly text: string
  readonly parentGuid: string | null
  readonly photoGuids: readonly string[]
  readonly targetCreatedAt: Date
}

export interface CaseRow extends Omit<CaseSnapshot, 'authorId' | 'authorGuid' | 'authorAddress' | 'text'> {
  readonly id: number
  readonly kind: 'report' | 'filter' | 'cluster'
  readonly state: CaseState
  /** Null once the author was deleted here. */
  readonly authorId: number | null
  readonly authorGuid: string | null
  readonly authorAddress: string | null
  readonly text: string | null
  readonly targetDeleted: 'author' | 'moderator' | 'account_closed' | 'purge' | null
  readonly reportCount: number
  readonly reporterCount: number
  readonly ignoreFurther: boolean
  readonly takenById: number | null
  readonly takenAt: Date | null
  readonly firstReportedAt: Date
  readonly lastReportedAt: Date
  readonly changedAt: Date
  readonly closedAt: Date | null
  /** The user name of the moderator who has taken the case. */
  readonly takenBy: string | null
  /** Current name of the author; null once deleted. */
  readonly authorName: string | null
  readonly authorAvatarUrl: string | null
  /** The post or comment is stored, and hidden by an action or the block of its author. */
  readonly isHidden: boolean
}

/** A case without its text, which may have 64 KiB: lists neither show nor read it. */
export type ListedCaseRow = Omit<CaseRow, 'text'>

/**
 * Finds the case of the target of a report and locks it, or inserts it. A report that opens a closed case again, or the first one of a case
 * without a text, renews the snapshot. A profile changes: what is new of it is added to the text of an open case.
 */
export async function lockOrInsertCase(
  transaction: Knex.Transaction,
  snapshot: CaseSnapshot,
  { at, canReopen }: { readonly at: Date; readonly canReopen: boolean },
): Promise<Pick<CaseRow, 'id' | 'state' | 'ignoreFurther'>> {
  const row = { ...snapshot, photoGuids: [...snapshot.photoGuids] }
  const { targetType: _type, targetGuid: _guid, text: _text, ...copied } = row
  const renewedSql = `case when moderation_cases.closed_at is null then moderation_cases.text is null
    else ${canReopen} and not moderation_cases.ignore_further end`
  const renewed = Object.keys(copied).map((column) => [
    column,
    transaction.raw(`case when ${renewedSql} then excluded.:column: else moderation_cases.:column: end`, { column }),
  ])
  const [found] = await transaction('moderation_cases')
    .insert({ ...row, firstReportedAt: at, lastReportedAt: at, changedAt: at })
    .onConflict(['targetType', 'targetGuid'])
    .merge({
      ...Object.fromEntries(renewed),
      text: transaction.raw(`case
        when ${renewedSql} then excluded.text
        when moderation_cases.target_type = 'person' and moderation_cases.closed_at is null
          and position(excluded.text in moderation_cases.text) = 0
          then left(concat_ws(e'\\n\\n', moderation_cases.text, excluded.text), ${SNAPSHOT_CHARACTERS})
        else moderation_cases.text end`),
      targetDeleted: null, // the reporter has just read it
      lastReportedAt: at,
    })
    .returning(['id', 'state', 'ignoreFurther'])
  if (found === undefined) throw new Error('A case was inserted and not returned.')
  return found
}

const SNAPSHOT_CHARACTERS = 65_535

/**
 * Who deletes what this transaction deletes from now on, for the cases of it and of what is below it. Without it a trigger notes the author,
 * or that their account is closed.
 */
export async function setDeleter(transaction: Knex.Transaction, by: 'moderator' | 'purge'): Promise<void> {
  await transaction.raw(`select set_config('pod.deleted_by', ?, true)`, [by])
}

/** Notes in the cases about a person and all their content that an admin deletes both. Index `moderation_cases_author_id`. */
export async function recordPurgedAuthor(transaction: Knex.Transaction, authorId: number, at: Date): Promise<void> {
  await transaction.raw(
    `with noted as (
       update moderation_cases set target_deleted = 'purge' where author_id = :authorId and target_deleted is null returning id
     )
     insert into moderation_case_events (case_id, at, event) select id, :at, 'target_deleted' from noted`,
    { authorId, at },
  )
}

/** Notes in the cases of content that a moderator has removed it. It may be stored still, hidden until an undo. */
export async function recordRemovedTarget(
  transaction: Knex.Transaction,
  { type, guid }: { readonly type: string; readonly guid: string },
  at: Date,
): Promise<void> {
  await transaction.raw(
    `with noted as (
       update moderation_cases set target_deleted = 'moderator'
       where target_type = :type and target_guid = :guid and target_deleted is null
       returning id
     )
     insert into moderation_case_events (case_id, at, event) select id, :at, 'target_deleted' from noted`,
    { type, guid, at },
  )
}

/** Takes back the note about content that is stored and shown again. */
export async function clearRemovedTargets(
  transaction: Knex.Transaction,
  targets: { readonly posts: readonly string[]; readonly comments: readonly string[] },
): Promise<void> {
  for (const [type, guids] of [
    ['post', targets.posts],
    ['comment', targets.comments],
  ] as const) {
    await transaction('moderation_cases')
      .where({ targetType: type, targetDeleted: 'moderator' })
      .whereIn('targetGuid', [...guids])
      .whereRaw(`exists (select from ${type}s where guid = target_guid)`)
      .update({ targetDeleted: null })
  }
}

interface NewCaseEvent {
  readonly caseId: number
  readonly event: CaseEventName
  readonly actorId: number | null
  readonly text?: string | undefined
  readonly actionId?: number
  readonly at: Date
}

/** Adds work on a case that does not change its state. The case is not idle since then. */
export async function addCaseWork(transaction: Knex.Transaction, event: NewCaseEvent): Promise<void> {
  await addCaseEvent(transaction, event)
  await transaction('moderation_cases').where({ id: event.caseId }).update({ changedAt: event.at })
}

export async function addCaseEvent(transaction: Knex.Transaction, event: NewCaseEvent): Promise<void> {
  await transaction('moderation_case_events').insert({
    ...event,
    text: event.text ?? null,
    actionId: event.actionId ?? null,
  })
}

/**
 * Erases the texts of cases that were closed some time ago, and deletes cases that were closed a year ago, with their reports. At most
 * `limit` of each. Returns how many. Index `moderation_cases_closed`.
 */
export async function deleteEvidence(
  db: Knex,
  {
    textsBefore,
    casesBefore,
    limit,
  }: { readonly textsBefore: Date; readonly casesBefore: Date; readonly limit: number },
): Promise<number> {
  const erasedTexts = await db('moderation_cases')
    .whereIn(
      'id',
      db('moderation_cases').where('closedAt', '<', textsBefore).whereNotNull('text').limit(limit).select('id'),
    )
    .update({ text: null })
  const deletedCases = await db('moderation_cases')
    .whereIn('id', db('moderation_cases').where('closedAt', '<', casesBefore).limit(limit).select('id'))
    .delete()
  return Math.max(erasedTexts, deletedCases)
}

/** Whether there are cases that were taken and then left without an entry. */
export async function hasIdleCases(db: Knex, before: Date): Promise<boolean> {
  return (await idleCases(db, before).first('id')) !== undefined
}

/** Releases these cases. Returns their ids. */
export async function releaseIdleCases(
  transaction: Knex.Transaction,
  before: Date,
  at: Date,
): Promise<readonly number[]> {
  const releasedCases: readonly { readonly id: number }[] = await idleCases(transaction, before)
    .update({ state: 'open', takenById: null, takenAt: null, changedAt: at })
    .returning('id')
  for (const { id } of releasedCases)
    await addCaseEvent(transaction, { caseId: id, event: 'released', actorId: null, at })
  return releasedCases.map(({ id }) => id)
}

function idleCases(db: Knex, before: Date): Knex.QueryBuilder {
  return db('moderation_cases').where({ state: 'taken', closedAt: null }).where('changedAt', '<', before)
}

export interface CaseFilter {
  readonly states?: readonly CaseState[] | undefined
  readonly type?: CaseTargetType | undefined
  /** The guid or the address of a person; of a local one also the user name. */
  readonly author?: string | undefined
  readonly domain?: string | undefined
  readonly isLocal?: boolean | undefined
  /** The user name, address or guid of a local person. */
  readonly takenBy?: string | undefined
  readonly reporter?: string | undefined
}

/** Cases about this person are left out. Null: none. */
export type ExcludedAuthor = number | null

/** Whether a row that may name a case is about no case of this author. */
export const IS_NOT_ABOUT_AUTHOR_SQL = `(case_id is null or not exists (
  select from moderation_cases as cases where cases.id = case_id and cases.author_id = ?))`

/** The place of a case in the list. It is that of the time of the page: a case that is taken or closed meanwhile has another one. */
export interface CasePosition {
  /** 0: open, 1: taken, 2: closed. */
  readonly rank: number
  readonly reporterCount: number
  readonly firstReportedAt: Date
  readonly id: number
}

/** The part of the list after or before a position; without either, its beginning. */
export interface CasePage {
  readonly after?: CasePosition | undefined
  readonly before?: CasePosition | undefined
  readonly limit: number
}

export function positionOfCase({ state, reporterCount, firstReportedAt, id }: ListedCaseRow): CasePosition {
  return { rank: state === 'open' ? 0 : state === 'taken' ? 1 : 2, reporterCount, firstReportedAt, id }
}

/** The expression of the index `moderation_cases_listed`. */
const RANK_SQL = `case cases.state when 'open' then 0 when 'taken' then 1 else 2 end`

/** Open cases first, then taken ones, then closed ones; of each, those with more reporters first, then the oldest. */
export async function listCases(
  db: Knex,
  { states, type, author, domain, isLocal, takenBy, reporter }: CaseFilter,
  excludedAuthorId: ExcludedAuthor,
  { after, before, limit }: CasePage,
): Promise<readonly ListedCaseRow[]> {
  const isBackward = after === undefined && before !== undefined
  const [down, up] = isBackward ? ['desc', 'asc'] : ['asc', 'desc']
  const query = selectCases(db, excludedAuthorId, LISTED_COLUMNS)
    .orderByRaw(`${RANK_SQL} ${down}, cases.reporter_count ${up}, cases.first_reported_at ${down}, cases.id ${down}`)
    .limit(limit)
  const position = after ?? before
  if (position !== undefined) {
    const compare = isBackward ? '<' : '>'
    const { rank, reporterCount, firstReportedAt, id } = position
    query
      .whereRaw(`${RANK_SQL} ${compare}= ?`, [rank]) // a range of the index
      .whereRaw(
        `(${RANK_SQL}, -cases.reporter_count, cases.first_reported_at, cases.id) ${compare} (?::integer, ?::integer, ?::timestamptz, ?::bigint)`,
        [rank, -reporterCount, firstReportedAt, id],
      )
  }
  if (states !== undefined && states.length > 0) query.whereIn('cases.state', [...states])
  if (type !== undefined) query.where('cases.targetType', type)
  if (author !== undefined) {
    query.whereRaw(
      `(cases.author_guid = :name or cases.author_address = lower(:name) or cases.author_id in (${PEOPLE_NAMED_SQL}))`,
      { name: author },
    )
  }
  if (domain !== undefined) query.whereRaw(`split_part(cases.author_address, '@', 2) = ?`, [domain])
  if (isLocal !== undefined) {
    query.whereRaw(`${isLocal ? '' : 'not '}exists (select from users where users.person_id = cases.author_id)`)
  }
  if (takenBy !== undefined) {
    const takers = `select id from users where person_id in (${PEOPLE_NAMED_SQL})`
    query.whereRaw(`cases.taken_by_id in (${takers})`, { name: takenBy })
  }
  if (reporter !== undefined) {
    query.whereRaw(
      `exists (
        select from reports join users on users.id = reports.user_id
        where reports.case_id = cases.id and users.person_id in (${PEOPLE_NAMED_SQL})
      )`,
      { name: reporter },
    )
  }
  const rows: readonly ListedCaseRow[] = await query
  return isBackward ? rows.toReversed() : rows
}

/** Finds a case without its text. */
export async function findListedCase(
  db: Knex,
  id: number,
  excludedAuthorId: ExcludedAuthor,
): Promise<ListedCaseRow | undefined> {
  return selectCases(db, excludedAuthorId, LISTED_COLUMNS).where('cases.id', id).first()
}

export async function findCase(db: Knex, id: number, excludedAuthorId: ExcludedAuthor): Promise<CaseRow | undefined> {
  return selectCases(db, excludedAuthorId).where('cases.id', id).first()
}

/**
 * Locks a case, so that two moderators do not change it at the same time. The weaker lock does not conflict with that of an action which
 * refers to the case: two actions that also resolve it do not deadlock.
 */
export async function lockCase(transaction: Knex.Transaction, id: number, excludedAuthorId: ExcludedAuthor) {
  await transaction('moderation_cases').where({ id }).select('id').forNoKeyUpdate()
  return findCase(transaction, id, excludedAuthorId)
}

/** One lookup by guid for each case. */
const IS_HIDDEN_SQL = `
  case cases.target_type
    when 'post' then (select true from posts where posts.guid = cases.target_guid and public_before_hiding is not null limit 1) is true
    when 'comment' then (select true from comments where comments.guid = cases.target_guid and hidden limit 1) is true
    else false
  end`

const LISTED_COLUMNS = [
  ...(['id', 'kind', 'state', 'targetType', 'targetGuid', 'targetCreatedAt', 'targetDeleted'] as const),
  ...(['authorId', 'authorGuid', 'authorAddress', 'public', 'parentGuid', 'photoGuids'] as const),
  ...(['reportCount', 'reporterCount', 'ignoreFurther', 'takenById', 'takenAt'] as const),
  ...(['firstReportedAt', 'lastReportedAt', 'changedAt', 'closedAt'] as const),
] satisfies readonly (keyof ListedCaseRow)[]

function selectCases(
  db: Knex,
  excludedAuthorId: ExcludedAuthor,
  columns: readonly string[] = ['*'],
): Knex.QueryBuilder {
  const query = db('moderation_cases as cases')
    .leftJoin('users as takers', 'takers.id', 'cases.takenById')
    .leftJoin('people as authors', 'authors.id', 'cases.authorId')
    .select(
      ...columns.map((column) => `cases.${column}`),
      'takers.username as takenBy',
      'authors.name as authorName',
      'authors.avatarUrl as authorAvatarUrl',
      db.raw(`${IS_HIDDEN_SQL} as "isHidden"`),
    )
  return excludedAuthorId === null ? query : query.whereRaw('cases.author_id is distinct from ?', [excludedAuthorId])
}

export interface CaseReport {
  readonly id: number
  readonly reason: string
  readonly createdAt: Date
  readonly reporterGuid: string
  readonly reporterName: string
}

export interface CaseEvent {
  readonly id: number
  readonly at: Date
  readonly event: CaseEventName
  readonly text: string | null
  readonly actionId: number | null
  readonly actorName: string | null
}

/** An action that names the case. */
export interface CaseAction {
  readonly id: number
  readonly caseId: number
  readonly kind: string
  readonly reason: string
  readonly createdAt: Date
  readonly canBeUndone: boolean
  /** The power that its undo needs. */
  readonly power: 'moderation' | 'administration'
  readonly undoneById: number | null
}

/** Lists the reports of a case, newest first. Index `reports_case_once`. */
export function listReportsOfCase(db: Knex, caseId: number, page: IdPage): Promise<ListPage<CaseReport>> {
  return readIdPage(reportsOfCase(db, caseId), page, 'reports.id')
}

/** Lists the first reports of a case. */
export async function listFirstReports(db: Knex, caseId: number, limit: number): Promise<readonly CaseReport[]> {
  return reportsOfCase(db, caseId).orderBy('reports.id').limit(limit)
}

function reportsOfCase(db: Knex, caseId: number): Knex.QueryBuilder {
  return db('reports')
    .join('users', 'users.id', 'reports.userId')
    .join('people', 'people.id', 'users.personId')
    .where({ caseId })
    .select(
      'reports.id',
      'reports.reason',
      'reports.createdAt',
      'people.guid as reporterGuid',
      'users.username as reporterName',
    )
}

/** Lists the history of a case, newest first. Index `moderation_case_events_case_id`. */
export function listCaseEvents(db: Knex, caseId: number, page: IdPage): Promise<ListPage<CaseEvent>> {
  const query = db('moderation_case_events as events')
    .leftJoin('users', 'users.id', 'events.actorId')
    .where({ caseId })
    .select('events.id', 'at', 'event', 'text', 'actionId', 'users.username as actorName')
  return readIdPage(query, page, 'events.id')
}

/** Lists the actions that name these cases, oldest first. */
export async function listCaseActions(db: Knex, caseIds: readonly number[]): Promise<readonly CaseAction[]> {
  if (caseIds.length === 0) return []
  return db('moderation_actions')
    .whereIn('caseId', [...caseIds])
    .orderBy('id')
    .select('id', 'caseId', 'kind', 'reason', 'createdAt', 'canBeUndone', 'power', 'undoneById')
}

/** The data of a live event about a case. */
export type LiveEventCase = Pick<CaseRow, 'id' | 'state' | 'kind' | 'reportCount'>

export async function listCasesOfLiveEvents(
  db: Knex,
  ids: readonly number[],
  excludedAuthorId: number,
): Promise<readonly LiveEventCase[]> {
  return db('moderation_cases as cases')
    .whereIn('id', [...ids])
    .whereRaw('cases.author_id is distinct from ?', [excludedAuthorId])
    .select('id', 'state', 'kind', 'reportCount')
}

/** Counts the events of a case except for reports: a change of a moderator adds one. */
export async function countCaseDecisions(db: Knex, caseId: number): Promise<number> {
  const { count } = await queryRow<{ readonly count: number }>(
    db,
    `select count(*)::integer as count from moderation_case_events where case_id = ? and event <> 'reported'`,
    [caseId],
  )
  return count
}

/** The time of the last report of the newest case. */
export async function findLastReportTime(db: Knex, excludedAuthorId: ExcludedAuthor): Promise<Date | undefined> {
  const query = db('moderation_cases as cases').orderBy('id', 'desc')
  if (excludedAuthorId !== null) query.whereRaw('cases.author_id is distinct from ?', [excludedAuthorId])
  return (await query.first('lastReportedAt'))?.lastReportedAt
}

/** A report of a user, with the state of its case. */
export interface OwnReport {
  readonly id: number
  readonly createdAt: Date
  readonly targetType: CaseTargetType
  readonly targetGuid: string
  readonly isClosed: boolean
}

export function ownReportsQuery(db: Knex, userId: number): Knex.QueryBuilder {
  return db('reports')
    .join('moderation_cases as cases', 'cases.id', 'reports.caseId')
    .where('reports.userId', userId)
    .select('reports.id', 'reports.createdAt', 'cases.targetType', 'cases.targetGuid')
    .select(db.raw(`cases.closed_at is not null as "isClosed"`))
}

/** Counts open cases by the type of their target. */
export async function countOpenCasesByType(
  db: Knex,
  excludedAuthorId: ExcludedAuthor,
): Promise<readonly { readonly type: CaseTargetType; readonly count: number }[]> {
  const query = db('moderation_cases as cases').where({ state: 'open' }).whereNull('closedAt')
  if (excludedAuthorId !== null) query.whereRaw('cases.author_id is distinct from ?', [excludedAuthorId])
  return query
    .groupBy('targetType')
    .orderBy('targetType')
    .select('targetType as type', db.raw('count(*)::integer as count'))
}

/** Counts cases that wait for a decision, and finds the oldest. */
export async function countWaitingCases(
  db: Knex,
  excludedAuthorId: ExcludedAuthor,
): Promise<{ readonly open: number; readonly taken: number; readonly oldest: Date | null }> {
  const query = db('moderation_cases as cases').whereNull('closedAt')
  if (excludedAuthorId !== null) query.whereRaw('cases.author_id is distinct from ?', [excludedAuthorId])
  return query.first(
    db.raw(`count(*) filter (where state = 'open') as open`),
    db.raw(`count(*) filter (where state = 'taken') as taken`),
    db.raw(`min(first_reported_at) as oldest`),
  )
}
