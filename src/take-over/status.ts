import type { Knex } from 'knex'
import { findTakeOver } from '../persistence/operations/take-over-state.js'

/** With the field names of the JSON output. */
export interface TakeOverStatus {
  readonly state: string
  readonly step: string | null
  readonly tables: readonly { readonly name: string; readonly rows: number; readonly done: number }[]
  readonly rows_per_second: number | null
  readonly seconds_left: number | null
}

/** How far the take-over is. Rate and time left are those of a running copy. */
export async function readStatus(db: Knex): Promise<TakeOverStatus> {
  const takeOver = await findTakeOver(db)
  if (takeOver === undefined)
    return { state: 'none', step: null, tables: [], rows_per_second: null, seconds_left: null }
  const { rows: present } = await db.raw(`select to_regclass('take_over.source_tables') is not null as exists`)
  const tables: TakeOverStatus['tables'] = present[0].exists ? (await db.raw(selectTables)).rows : []
  const totalRows = tables.reduce((sum, { rows }) => sum + rows, 0)
  const done = tables.reduce((sum, { done: rows }) => sum + rows, 0)
  const { rows: copied } = present[0].exists
    ? await db.raw(
        `select coalesce(sum(rows), 0)::float as rows, extract(epoch from now() - cast(:since as timestamptz))::float as seconds
         from take_over.copied_blocks where copied_at >= cast(:since as timestamptz)`,
        { since: takeOver.stepStartedAt ?? takeOver.createdAt },
      )
    : { rows: [{ rows: 0, seconds: 0 }] }
  const isCopying = takeOver.step !== null && copied[0].rows > 0 && copied[0].seconds > 0
  const rate = isCopying ? copied[0].rows / copied[0].seconds : null
  return {
    state: takeOver.state,
    step: takeOver.step,
    tables,
    rows_per_second: rate === null ? null : Math.round(rate),
    seconds_left: rate === null ? null : Math.max(0, (totalRows - done) / rate),
  }
}

const selectTables = `
  select source.name, source.rows::float, coalesce(sum(blocks.rows), 0)::float as done
  from take_over.source_tables as source left join take_over.copied_blocks as blocks on blocks.table_name = source.name
  group by source.name, source.rows order by source.name`
