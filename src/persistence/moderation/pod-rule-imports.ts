import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import type { PodRule, PodRuleState } from './pod-rules.js'

export type ImportMode = 'keep' | 'stricter' | 'replace'

export interface PodRuleImport {
  readonly id: number
  readonly mode: ImportMode
  readonly state: 'planned' | 'applied' | 'undone'
  readonly createdBy: string
  readonly createdAt: Date
}

export const IMPORT_VERDICTS = ['add', 'change', 'covered', 'skip'] as const

export interface ImportRow {
  readonly domain: string
  /** Null: every port. */
  readonly port: number | null
  readonly severity: string
  readonly state: Exclude<PodRuleState, 'normal'> | null
  readonly subdomains: boolean
  readonly publicComment: string
  readonly obfuscate: boolean
  readonly rejectMedia: boolean
  readonly rejectReports: boolean
  readonly verdict: (typeof IMPORT_VERDICTS)[number]
  readonly fault: string | null
  readonly contacts: number
  readonly chosen: boolean
}

export interface StoredImportRow extends ImportRow {
  readonly id: number
  readonly step: 'planned' | 'applied' | 'skipped' | 'undone' | 'kept'
}

export async function insertPodRuleImport(
  transaction: Knex.Transaction,
  { mode, createdBy }: Pick<PodRuleImport, 'mode' | 'createdBy'>,
  rows: readonly ImportRow[],
): Promise<PodRuleImport> {
  const [made] = await transaction('pod_rule_imports').insert({ mode, createdBy }).returning('*')
  await transaction.raw(NEW_ROWS_SQL, [made.id, JSON.stringify(rows)])
  return made
}

const RULE_COLUMNS_SQL = `domain text, port integer, severity text, state text, subdomains boolean, "publicComment" text, obfuscate boolean,
  "rejectMedia" boolean, "rejectReports" boolean, verdict text, fault text, contacts integer, chosen boolean`

const NEW_ROWS_SQL = `
  insert into pod_rule_import_rows (import_id, domain, port, severity, state, subdomains, public_comment, obfuscate,
    reject_media, reject_reports, verdict, fault, contacts, chosen)
  select ?, domain, port, severity, state, subdomains, "publicComment", obfuscate, "rejectMedia", "rejectReports", verdict,
    fault, contacts, chosen
  from rows from (json_to_recordset(?::json) as (${RULE_COLUMNS_SQL})) with ordinality
    as row(domain, port, severity, state, subdomains, "publicComment", obfuscate, "rejectMedia", "rejectReports", verdict,
      fault, contacts, chosen, position)
  order by position`

export async function findPodRuleImport(db: Knex, id: number): Promise<PodRuleImport | undefined> {
  return db('pod_rule_imports').where({ id }).first()
}

export async function lockPodRuleImport(transaction: Knex.Transaction, id: number): Promise<PodRuleImport | undefined> {
  return transaction('pod_rule_imports').where({ id }).forUpdate().first()
}

export async function listImportRows(db: Knex, importId: number): Promise<readonly StoredImportRow[]> {
  return db('pod_rule_import_rows').where({ importId }).orderBy('id')
}

/** A part of the rows of an import, in their order. */
export async function listImportRowsFrom(
  db: Knex,
  importId: number,
  {
    verdict,
    after,
    limit,
  }: { readonly verdict?: ImportRow['verdict'] | undefined; readonly after: number; readonly limit: number },
): Promise<readonly StoredImportRow[]> {
  const query = db('pod_rule_import_rows').where({ importId }).where('id', '>', after).orderBy('id').limit(limit)
  return verdict === undefined ? query : query.where({ verdict })
}

export interface ImportCount extends Pick<StoredImportRow, 'verdict' | 'step' | 'chosen'> {
  readonly rows: number
}

export async function countImportRows(db: Knex, importId: number): Promise<readonly ImportCount[]> {
  return db('pod_rule_import_rows')
    .where({ importId })
    .groupBy('verdict', 'step', 'chosen')
    .orderBy(['verdict', 'step', 'chosen'])
    .select('verdict', 'step', 'chosen', db.raw('count(*)::integer as rows'))
}

export async function listPodRuleImports(db: Knex, limit: number): Promise<readonly PodRuleImport[]> {
  return db('pod_rule_imports').orderBy('id', 'desc').limit(limit)
}

export async function setPodRuleImportState(
  transaction: Knex.Transaction,
  id: number,
  state: PodRuleImport['state'],
): Promise<void> {
  await transaction('pod_rule_imports').where({ id }).update({ state })
}

/** Chooses the rows that are applied, of those that can be. Undefined: the choice of the plan. Returns their number. */
export async function chooseRows(
  transaction: Knex.Transaction,
  importId: number,
  ids: readonly number[] | undefined,
): Promise<number> {
  if (ids !== undefined) {
    await transaction.raw(
      `update pod_rule_import_rows set chosen = verdict <> 'skip' and id = any(?::bigint[]) where import_id = ?`,
      [[...ids], importId],
    )
  }
  const { count } = await queryRow<{ readonly count: number }>(
    transaction,
    'select count(*)::integer as count from pod_rule_import_rows where import_id = ? and chosen',
    [importId],
  )
  return count
}

export interface ChunkResult {
  readonly done: number
  readonly skipped: number
}

/** Applies the next rows of an import. Rules that the mode keeps are skipped. */
export async function applyImportRows(
  transaction: Knex.Transaction,
  { id, mode, createdBy }: PodRuleImport,
  { reason, limit, at }: { readonly reason: string; readonly limit: number; readonly at: Date },
): Promise<ChunkResult> {
  return queryRow<ChunkResult>(transaction, APPLIED_ROWS_SQL, { id, mode, createdBy, reason, limit, at })
}

const rank = (state: string) => `case ${state} when 'blocked' then 2 when 'limited' then 1 else 0 end`

const APPLIED_ROWS_SQL = `
  with chunk as materialized (
    select * from pod_rule_import_rows where import_id = :id and chosen and step = 'planned' order by id limit :limit
  ), before as materialized (
    select chunk.id, to_jsonb(pod_rules) as rule from chunk
    join pod_rules on pod_rules.domain = chunk.domain and pod_rules.port is not distinct from chunk.port
  ), saved as (
    insert into pod_rules (domain, port, subdomains, state, reason, public_comment, obfuscate, reject_media, reject_reports, source,
      batch_id, created_by, created_at, updated_at)
    select domain, port, subdomains, state, :reason, public_comment, obfuscate, reject_media, reject_reports, 'import', :id,
      :createdBy, :at, :at
    from chunk order by id
    on conflict (domain, coalesce(port, 0)) do update set
      state = excluded.state, subdomains = excluded.subdomains, reason = pod_rules.reason,
      public_comment = excluded.public_comment, obfuscate = excluded.obfuscate, reject_media = excluded.reject_media,
      reject_reports = excluded.reject_reports, source = 'import', batch_id = excluded.batch_id, until = null,
      updated_at = excluded.updated_at
      where :mode = 'replace' or (:mode = 'stricter' and ${rank('excluded.state')} > ${rank('pod_rules.state')})
    returning domain, coalesce(port, 0) as port
  ), noted as (
    update pod_rule_import_rows as rows set
      step = case when (chunk.domain, coalesce(chunk.port, 0)) in (select domain, port from saved) then 'applied' else 'skipped' end,
      rule_before = before.rule
    from chunk left join before using (id)
    where rows.id = chunk.id
    returning rows.step
  )
  select count(*) filter (where step = 'applied')::integer as done, count(*) filter (where step = 'skipped')::integer as skipped
  from noted`

/** Takes the next rows of an import back. A rule that was changed or deleted since stays as it is. */
export async function undoImportRows(
  transaction: Knex.Transaction,
  { id }: Pick<PodRuleImport, 'id'>,
  { limit, at }: { readonly limit: number; readonly at: Date },
): Promise<ChunkResult> {
  return queryRow<ChunkResult>(transaction, UNDONE_ROWS_SQL, { id, limit, at })
}

const UNDONE_ROWS_SQL = `
  with chunk as materialized (
    select rows.*, pod_rules.id as rule_id
    from pod_rule_import_rows as rows
    left join pod_rules on pod_rules.domain = rows.domain and pod_rules.port is not distinct from rows.port
      and pod_rules.batch_id = rows.import_id
    where rows.import_id = :id and rows.chosen and rows.step = 'applied'
    order by rows.id limit :limit
  ), deleted as (
    delete from pod_rules using chunk where pod_rules.id = chunk.rule_id and chunk.rule_before is null
  ), restored as (
    update pod_rules set
      state = chunk.rule_before->>'state', subdomains = cast(chunk.rule_before->>'subdomains' as boolean),
      reason = chunk.rule_before->>'reason', public_comment = chunk.rule_before->>'public_comment',
      obfuscate = cast(chunk.rule_before->>'obfuscate' as boolean),
      reject_media = cast(chunk.rule_before->>'reject_media' as boolean),
      reject_reports = cast(chunk.rule_before->>'reject_reports' as boolean),
      until = cast(chunk.rule_before->>'until' as timestamptz), source = chunk.rule_before->>'source',
      batch_id = cast(chunk.rule_before->>'batch_id' as bigint), updated_at = :at
    from chunk where pod_rules.id = chunk.rule_id and chunk.rule_before is not null
  ), noted as (
    update pod_rule_import_rows as rows set step = case when chunk.rule_id is null then 'kept' else 'undone' end
    from chunk where rows.id = chunk.id
    returning rows.step
  )
  select count(*) filter (where step = 'undone')::integer as done, count(*) filter (where step = 'kept')::integer as skipped
  from noted`

/** Pairs of local users and remote people with a relation, by host and port of the pod and of the address. */
export async function countRelationsByHost(
  db: Knex,
): Promise<readonly { readonly host: string; readonly port: number; readonly contacts: number }[]> {
  return queryRows<{ readonly host: string; readonly port: number; readonly contacts: number }>(
    db,
    `
    select host, port, count(*)::integer as contacts from (
      select distinct contacts.id, hosts.host, hosts.port
      from contacts
      join people on people.id = contacts.person_id
      join pods on pods.id = people.pod_id
      cross join lateral (
        values (pods.host, pods.port), (
          regexp_replace(split_part(people.address, '@', 2), ':[0-9]+$', ''),
          coalesce(cast(substring(people.address from ':([0-9]+)$') as integer), 443)
        )
      ) as hosts(host, port)
      where contacts.sharing or contacts.receiving
    ) as pairs group by host, port`,
  )
}

/** The rules that there are, for the plan of an import. */
export async function readRuleStates(
  db: Knex,
): Promise<readonly Pick<PodRule, 'domain' | 'port' | 'subdomains' | 'state'>[]> {
  return db('pod_rules').select('domain', 'port', 'subdomains', 'state')
}
