/** A statement for MySQL, with the values of its place holders in their order. */
export interface MysqlStatement {
  readonly sql: string
  readonly values: readonly unknown[]
}

type Replacement = readonly [pattern: RegExp, by: string]

/** The parts of PostgreSQL's language that the statements about the source use. The session has the modes of ANSI. */
const REPLACEMENTS: readonly Replacement[] = [
  [/string_agg\((\w+)::text, ('[^']*') order by (\w+)\)/g, 'group_concat($1 order by $3 separator $2)'],
  [/([\w.]+)::text/g, 'cast($1 as char)'],
  [/::(int|float)\b/g, ''],
  [/split_part\(lower\(([\w.]+)\), '@', 2\)/g, `substring_index(lower($1), '@', -1)`],
  [/split_part\(([\w.]+), '\/', 3\)/g, `substring_index(substring_index($1, '/', 3), '/', -1)`],
  [/!~/g, 'not regexp'],
  [/\bselect from\b/g, 'select 1 from'],
  [/\blocaltimestamp\b/g, 'utc_timestamp()'],
  [/interval '(\d+) day'/g, 'interval $1 day'],
  [/\blength\(/g, 'char_length('],
  [/count\(\*\) filter \(where ([^()]+)\)/g, 'count(case when $1 then 1 end)'],
]

/** Translates a statement that was written for PostgreSQL. */
export function toMysql(statement: string, values: readonly unknown[] = []): MysqlStatement {
  const mysqlText = REPLACEMENTS.reduce((sql, [pattern, by]) => sql.replace(pattern, by), statement)
  const orderedValues: unknown[] = []
  const sql = mysqlText.replace(/\$(\d+)/g, (_, number: string) => {
    orderedValues.push(values[Number(number) - 1])
    return '?'
  })
  return { sql, values: orderedValues }
}
