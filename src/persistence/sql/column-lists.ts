/** Rows as one list per column. A row has the same index in each list. */
export type ColumnLists<Row> = { readonly [Name in keyof Row]: readonly Row[Name][] }

/** Returns any number of rows as one value of a statement, and decodes that value. */
export interface ColumnsAggregate<Row> {
  /** The SQL aggregate over the rows. It keeps their order. */
  readonly select: string
  decode(value: AggregatedColumns): ColumnLists<Row>
}

/** The value of the aggregate: the numbers alone, or the numbers and one list per text column. Null: no rows. */
export type AggregatedColumns = string | readonly [string | null, ...(readonly (string | null)[] | null)[]] | null

export type RowOfAggregate<Aggregate> = Aggregate extends ColumnsAggregate<infer Row> ? Row : never

interface Column<Value> {
  readonly sql: string
  readonly isText?: true
  /** Converts the number that the server sends. Not set: the value is the number. */
  readonly fromNumber?: (number: number) => Value
}

/**
 * Aggregates rows: the numbers of all rows in one comma-separated text, row by row, and each text column in a JSON list.
 *
 * Why not `json_agg` of the rows: the column names, repeated in each row, cost as much to write and to parse as the values. Why not one
 * list per column: the server sets up each aggregate by itself.
 */
export function aggregateColumns<Row>(
  columns: {
    readonly [Name in keyof Row]: Column<Row[Name]>
  },
): ColumnsAggregate<Row> {
  const entries = Object.entries<Column<unknown>>(columns)
  const numberColumns = entries.filter(([, { isText }]) => !isText)
  const textColumns = entries.filter(([, { isText }]) => isText)
  const numbersSql = `string_agg(concat_ws(',', ${numberColumns.map(([, { sql }]) => sql).join(', ')}), ',')`
  const textsSql = textColumns.map(([, { sql }]) => `json_agg(${sql})`)

  return {
    select: textColumns.length === 0 ? numbersSql : `json_build_array(${[numbersSql, ...textsSql].join(', ')})`,
    decode(value) {
      const [numbers, ...texts] = typeof value === 'string' || value === null ? [value] : value
      const values: readonly number[] = numbers === null ? [] : JSON.parse(`[${numbers}]`)
      const lists: Record<string, readonly unknown[]> = {}
      numberColumns.forEach(([name, { fromNumber }], first) => {
        const list: number[] = []
        for (let index = first; index < values.length; index += numberColumns.length) list.push(valueAt(values, index))
        lists[name] = fromNumber ? list.map(fromNumber) : list
      })
      textColumns.forEach(([name], index) => {
        lists[name] = texts[index] ?? []
      })
      return lists as ColumnLists<Row> // one list per column of the row
    },
  }
}

export function numberColumn(sql: string): Column<number> {
  return { sql }
}

export function nullableNumberColumn(sql: string): Column<number | null> {
  return { sql: `coalesce(${sql}::text, 'null')` }
}

export function booleanColumn(sql: string): Column<boolean> {
  return { sql: `(${sql})::int`, fromNumber: (number) => number === 1 }
}

/** A point in time as milliseconds since 1970, the precision of all stored times. */
export function timeColumn(sql: string): Column<number> {
  return { sql: `(date_part('epoch', ${sql}) * 1000)::bigint` }
}

export function textColumn<Text extends string = string>(sql: string): Column<Text> {
  return { sql, isText: true }
}

export function nullableTextColumn(sql: string): Column<string | null> {
  return { sql, isText: true }
}

/** Turns column lists into row objects. For long lists it is cheaper to read the columns with `valueAt`. */
export function rowsFromColumns<Row>(lists: ColumnLists<Row>): readonly Row[] {
  const columns = Object.entries<readonly unknown[]>(lists)
  const [, firstColumn = []] = columns[0] ?? []
  return firstColumn.map((_, index) => {
    const row: Record<string, unknown> = {}
    for (const [name, column] of columns) row[name] = column[index]
    return row as Row // has each column of the row
  })
}

/** The value of one row in a column list. */
export function valueAt<Value>(column: readonly Value[], index: number): Value {
  return column[index] as Value // all columns have the same length
}
