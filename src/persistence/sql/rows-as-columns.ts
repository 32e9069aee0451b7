/** Rows as one array for each column, for `unnest`: the server takes an eighth of the time that it takes to read them as JSON. */
export function rowsAsColumns<Row>(
  rows: readonly Row[],
  columns: readonly (keyof Row)[],
): readonly (readonly Row[keyof Row][])[] {
  return columns.map((column) => rows.map((row) => row[column]))
}
