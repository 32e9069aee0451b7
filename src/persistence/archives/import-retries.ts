import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { rowsAsColumns } from '../sql/rows-as-columns.js'
import type { ArchiveImport, ImportCounts, ImportSection, ItemOutcome, SectionCounts } from './imports.js'

/** Reasons that may be gone later: another pod did not answer, or did not know something yet. */
const TRIED_AGAIN = ['not_found', 'author_unknown', 'parent_missing', 'root_missing', 'over_limit']

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

/** Replaces outcomes of items, and counts all items of the import anew. */
export async function replaceOutcomes(
  transaction: Knex.Transaction,
  importId: number,
  items: readonly ItemOutcome[],
): Promise<void> {
  await transaction('imports').where({ id: importId }).forUpdate()
  await transaction.raw(
    `update import_items set outcome = input.outcome, reason = input.reason
     from unnest(?::text[], ?::integer[], ?::text[], ?::text[], ?::text[]) as input(section, position, ref, outcome, reason)
     where import_id = ? and import_items.section = input.section and import_items.position = input.position
       and import_items.ref = input.ref`,
    [...rowsAsColumns(items, ['section', 'position', 'ref', 'outcome', 'reason']), importId] as Knex.RawBinding[],
  )
  const { counts } = await transaction('imports').where({ id: importId }).first('counts')
  await transaction('imports')
    .where({ id: importId })
    .update({ counts: JSON.stringify(await recountOutcomes(transaction, importId, counts)) })
}

interface CountedOutcome extends Pick<ItemOutcome, 'section' | 'outcome' | 'reason'> {
  readonly count: number
}

async function recountOutcomes(
  transaction: Knex.Transaction,
  importId: number,
  before: ImportCounts,
): Promise<ImportCounts> {
  const rows = await queryRows<CountedOutcome>(
    transaction,
    'select section, outcome, reason, count(*)::integer as count from import_items where import_id = ? group by 1, 2, 3',
    [importId],
  )
  const counts = Object.entries(before).map(([section, { found }]): [string, SectionCounts] => {
    const outcomesOf = (outcome: ItemOutcome['outcome']) =>
      rows.filter((row) => row.section === section && row.outcome === outcome)
    const sum = (some: readonly { readonly count: number }[]) => some.reduce((total, { count }) => total + count, 0)
    const by_reason = Object.fromEntries(outcomesOf('refused').map(({ reason, count }) => [reason, count]))
    return [
      section,
      {
        found,
        imported: sum(outcomesOf('imported')),
        skipped: sum(outcomesOf('already_there')),
        refused: sum(outcomesOf('refused')),
        by_reason,
      },
    ]
  })
  return Object.fromEntries(counts)
}
