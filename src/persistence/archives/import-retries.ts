import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { rowsAsColumns } from '../sql/rows-as-columns.js'
import type { ArchiveImport, ImportCounts, ImportSection, ItemOutcome, SectionCounts } from './imports.js'

/** Reasons that may be gone later: another pod did not answer, or did not know something yet. */
export const TRIED_AGAIN: readonly string[] = [
  'not_found',
  'author_unknown',
  'parent_missing',
  'root_missing',
  'over_limit',
]

/** Positions of the items that are tried again, by section. */
export type RetriedItems = ReadonlyMap<ImportSection, ReadonlySet<number>>

export async function findRetriedItems(db: Knex, importId: number): Promise<RetriedItems> {
  const rows: readonly Pick<ItemOutcome, 'section' | 'position'>[] = await db('importItems')
    .where({ importId, outcome: 'refused' })
    .whereIn('reason', TRIED_AGAIN)
    .select('section', 'position')
  const sections = new Map<ImportSection, Set<number>>()
  for (const { section, position } of rows) {
    const positions = sections.get(section) ?? new Set()
    sections.set(section, positions.add(position))
  }
  return sections
}

/** Imports whose items are due, the first one first. */
export async function findDueRetries(
  db: Knex,
  now: Date,
): Promise<readonly (Pick<ArchiveImport, 'id' | 'uid'> & { readonly retryAt: Date })[]> {
  return db('imports')
    .where({ state: 'done' })
    .where('retryAt', '<=', now)
    .orderBy('retryAt')
    .select('id', 'uid', 'retryAt')
}

/** Claims an import whose items are due: the next attempt is `leaseHours` later, also if this one fails. */
export async function claimRetry(
  db: Knex,
  id: number,
  { now, leaseHours }: { readonly now: Date; readonly leaseHours: number },
): Promise<ArchiveImport | undefined> {
  const [claimedImport] = await db('imports')
    .where({ id, state: 'done' })
    .where('retryAt', '<=', now)
    .update({ retries: db.raw('retries + 1'), retryAt: new Date(now.getTime() + leaseHours * HOUR_MS) })
    .returning('*')
  return claimedImport
}

const HOUR_MS = 60 * 60_000

export async function setRetry(db: Knex, id: number, retryAt: Date | null): Promise<void> {
  await db('imports').where({ id }).update({ retryAt })
}

/** Replaces outcomes of items, and changes the counts by the difference. Not each refused item has a row. */
export async function replaceOutcomes(
  transaction: Knex.Transaction,
  importId: number,
  items: readonly ItemOutcome[],
): Promise<void> {
  const { counts } = await transaction('imports').where({ id: importId }).forUpdate().first('counts')
  const columns = rowsAsColumns(items, ['section', 'position', 'ref', 'outcome', 'reason'])
  const bindings = [...columns, importId, importId] as Knex.RawBinding[]
  const changes = await queryRows<OutcomeChange>(transaction, REPLACED_OUTCOMES_SQL, bindings)
  await transaction('imports')
    .where({ id: importId })
    .update({ counts: JSON.stringify(addCounts(counts, changes)) })
}

/** By how many the items with an outcome have become more; negative if they have become fewer. */
interface OutcomeChange extends Pick<ItemOutcome, 'section' | 'outcome' | 'reason'> {
  readonly count: number
}

/** `before` sees the rows as they were before the statement. */
const REPLACED_OUTCOMES_SQL = `
  with input as (
    select * from unnest(?::text[], ?::integer[], ?::text[], ?::text[], ?::text[]) as input(section, position, ref, outcome, reason)
  ), before as (
    select section, outcome, reason from import_items
    where import_id = ? and (section, position, ref) in (select section, position, ref from input)
  ), replaced as (
    update import_items set outcome = input.outcome, reason = input.reason
    from input
    where import_id = ? and import_items.section = input.section and import_items.position = input.position
      and import_items.ref = input.ref
    returning import_items.section, import_items.outcome, import_items.reason
  )
  select section, outcome, reason, sum(change)::integer as count
  from (
    select section, outcome, reason, -1 as change from before
    union all
    select section, outcome, reason, 1 from replaced
  ) as changes
  group by 1, 2, 3`

function addCounts(counts: ImportCounts, rows: readonly OutcomeChange[]): ImportCounts {
  const changed = Object.entries(counts).map(([section, before]): [string, SectionCounts] => {
    const sum = (outcome: ItemOutcome['outcome'], reason?: string) =>
      rows
        .filter((row) => row.section === section && row.outcome === outcome && (reason ?? row.reason) === row.reason)
        .reduce((total, { count }) => total + count, 0)
    const listedReasons = rows.flatMap((row) => (row.section === section ? (row.reason ?? []) : []))
    const reasons = [...new Set([...Object.keys(before.by_reason), ...listedReasons])]
    const by_reason = reasons
      .map((reason) => [reason, (before.by_reason[reason] ?? 0) + sum('refused', reason)] as const)
      .filter(([, count]) => count > 0)
    return [
      section,
      {
        found: before.found,
        imported: before.imported + sum('imported'),
        skipped: before.skipped + sum('already_there'),
        refused: before.refused + sum('refused'),
        by_reason: Object.fromEntries(by_reason),
      },
    ]
  })
  return Object.fromEntries(changed)
}
