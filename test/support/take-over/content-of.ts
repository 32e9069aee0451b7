import type { Knex } from 'knex'

/** All rows of the tables of a schema, as text that can be compared. */
export async function contentOf(db: Knex, schema = 'public', without: readonly string[] = []): Promise<string> {
  const { rows } = await db.raw(
    `select relname as name from pg_class where relnamespace = to_regnamespace(?) and relkind = 'r' order by 1`,
    [schema],
  )
  const parts: string[] = []
  for (const { name } of rows) {
    if (without.includes(name)) continue
    const found = await db.raw(
      `select coalesce(string_agg(md5(content.line), ',' order by content.line collate "C"), '') as lines
       from (select ??::text as line from ??.??) as content`,
      [name, schema, name],
    )
    parts.push(`${name}: ${found.rows[0].lines}`)
  }
  return parts.join('\n')
}
