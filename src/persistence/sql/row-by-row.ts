/**
 * A join that looks one row up for each row before it, by an index. Where the server believes a table to be nearly empty, because
 * it has not analysed it since, a plain join reads the whole table.
 */
export function rowByRowSql(table: string, condition: string, alias = table): string {
  return `cross join lateral (select * from ${table} where ${condition} offset 0) as ${alias}`
}
