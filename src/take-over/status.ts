import type { Knex } from 'knex'
import { queryRow, queryRows } from '../persistence/database/database.js'
import { findTakeOver } from '../persistence/operations/take-over-state.js'

interface CopiedTable {
  readonly name: string
  readonly rows: number
  readonly done: number
}

/** State of a take-over, with the field names of the JSON output. */
export interface TakeOverStatus {
  readonly state: string
  readonly step: string | null
  readonly tables: readonly CopiedTable[]
  readonly rows_per_second: number | null
  readonly seconds_left: number | null
  /** Rows that were added since the switch, by table: the old pod would miss them. Null before the switch and after `finish`. */
  readonly added: Readonly<Record<string, number>> | null
}

/** How far the take-over is. Rate and time left are those of a running copy. */
export async function readStatus(db: Knex): Promise<TakeOverStatus> {
  const takeOver = await findTakeOver(db)
  if (takeOver === undefined)
    return { state: 'none', step: null, tables: [], rows_per_second: null, seconds_left: null, added: null }
  const staging = await queryRow<{ readonly exists: boolean }>(
    db,
    `select to_regclass('take_over.source_tables') is not null as exists`,
  )
  const tables = staging.exists ? await queryRows<CopiedTable>(db, SELECT_TABLES_SQL) : []
  const totalRows = tables.reduce((sum, { rows }) => sum + rows, 0)
  const done = tables.reduce((sum, { done: rows }) => sum + rows, 0)
  const copyProgress = staging.exists
    ? await queryRow<{ readonly rows: number; readonly seconds: number }>(
        db,
        `select coalesce(sum(rows), 0)::float as rows, extract(epoch from now() - cast(:since as timestamptz))::float as seconds
         from take_over.copied_blocks where copied_at >= cast(:since as timestamptz)`,
        { since: takeOver.stepStartedAt ?? takeOver.createdAt },
      )
    : { rows: 0, seconds: 0 }
  const isCopying = takeOver.step !== null && copyProgress.rows > 0 && copyProgress.seconds > 0
  const rate = isCopying ? copyProgress.rows / copyProgress.seconds : null
  return {
    state: takeOver.state,
    step: takeOver.step,
    tables,
    rows_per_second: rate === null ? null : Math.round(rate),
    seconds_left: rate === null ? null : Math.max(0, (totalRows - done) / rate),
    added: takeOver.state === 'open' && staging.exists ? await countAddedRows(db) : null,
  }
}

const TABLES_OF_USERS = ['users', 'contacts', 'posts', 'photos', 'comments', 'likes', 'messages'] as const

/** New rows have ids above those that the old pod has given. */
async function countAddedRows(db: Knex): Promise<Readonly<Record<string, number>>> {
  const counts = TABLES_OF_USERS.map(
    (name) =>
      `(select count(*)::int from ${name} where id > (select last_key from take_over.source_tables where name = '${name}')) as ${name}`,
  )
  return queryRow(db, `select ${counts.join(', ')}`)
}

const SELECT_TABLES_SQL = `
  select source.name, source.rows::float, coalesce(sum(blocks.rows), 0)::float as done
  from take_over.source_tables as source left join take_over.copied_blocks as blocks on blocks.table_name = source.name
  group by source.name, source.rows order by source.name`
