/** Parts of the statements of the build. The settings `take_over.*` are set in its transaction. */

/** A setting of the build as text. */
export function settingSql(
  name: 'host' | 'hostname' | 'url' | 'copied_at' | 'built_at' | 'own_paths' | 'subject_key',
): string {
  return `current_setting('take_over.${name}')`
}

/** A setting of the build as a typed value, which is read once for a statement and not for each row. */
export function settingOnceSql(name: Parameters<typeof settingSql>[0], type: 'timestamptz' | 'text[]'): string {
  return `(select ${settingSql(name)}::${type})`
}

const EARLIEST_SQL = `timestamp '2010-01-01'`

/** A time of the source, which is UTC: cut to milliseconds, which timestamptz(3) would round. Null: the next one, in the end 2010. */
export function timeSql(...columns: readonly string[]): string {
  return `(date_trunc('milliseconds', coalesce(${[...columns, EARLIEST_SQL].join(', ')})) at time zone 'UTC')`
}

/** A time of content. The clock of a remote author may be fast, so the time is never after the copy. */
export function timeOfContentSql(isRemote: string, ...columns: readonly string[]): string {
  const time = timeSql(...columns)
  return `case when ${isRemote} then least(${time}, ${settingOnceSql('copied_at', 'timestamptz')}) else ${time} end`
}

/** The time of the row's own column; null stays null. */
export function timeOrNullSql(column: string): string {
  return `(date_trunc('milliseconds', ${column}) at time zone 'UTC')`
}

/** Pattern of a guid without a count: with `{15,254}` it takes a hundred times as long. The collation is that of bytes. */
const GUID_PATTERN = `^[0-9A-Za-z_@.:-]*[0-9A-Za-z]$`

/** A guid as it is, or one that is made of it and the id, if the network would refuse it. */
export function guidSql(table: string, alias: string, isKept = 'true'): string {
  const isValid = `length(${alias}.guid) between 16 and 255 and ${alias}.guid collate "C" ~ '${GUID_PATTERN}'`
  return `case when ${isValid} and ${isKept} then ${alias}.guid else ${generatedGuidSql(table, alias)} end`
}

function generatedGuidSql(table: string, alias: string): string {
  return `left(encode(sha256(convert_to(
    'take-over ${table} ' || ${alias}.id || ' ' || coalesce(${alias}.guid, ''), 'UTF8')), 'hex'), 32)`
}

/** Notes rows that are not copied, with the code of the reason. Rows whose code is null are copied. */
export function insertSkippedRowsSql(table: string, select: string): string {
  return `insert into take_over.skipped_rows (source, id, code)
    select '${table}', id, code from (${select}) as judged where code is not null`
}

/** A condition: the row of the source is copied. */
export function isCopiedSql(table: string, id: string): string {
  return `not exists (select from take_over.skipped_rows where skipped_rows.source = '${table}' and skipped_rows.id = ${id})`
}
