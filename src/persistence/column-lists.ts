/** Rows as one value: a list for each column, in which a row has the same place. */
export type ColumnLists<Row> = { readonly [Name in keyof Row]: readonly Row[Name][] }

/**
 * Some rows as such a value, as part of a statement; by the names that their columns get. Names that stand in each row cost as
 * much to write and to read as what they name.
 */
export function columnLists<Row>(columns: { readonly [Name in keyof Row]: string }): string {
  const lists = Object.entries<string>(columns).map(
    ([name, column]) => `'${name}', coalesce(json_agg(${column}), '[]')`,
  )
  return `json_build_object(${lists.join(', ')})`
}

/** The rows themselves. Where there are many, it costs less to take from the lists what is needed. */
export function rowsOf<Row>(lists: ColumnLists<Row>): readonly Row[] {
  const columns = Object.entries<readonly unknown[]>(lists)
  const [, first = []] = columns[0] ?? []
  return first.map((_, place) => {
    const row: Record<string, unknown> = {}
    for (const [name, column] of columns) row[name] = column[place]
    return row as Row // each column is one of it
  })
}

/** What a row has in one of its columns. */
export function valueAt<Value>(column: readonly Value[], place: number): Value {
  return column[place] as Value // each column is as long as the others
}

/** A point in time as a number that `readMoment` takes, which costs less than a text. */
export function momentOf(column: string): string {
  return `date_part('epoch', ${column}) * 1000`
}

/** What is stored has milliseconds; the server counts in fractions of a second. */
export function readMoment(milliseconds: number): Date {
  return new Date(Math.round(milliseconds))
}
