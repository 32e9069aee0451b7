/** Rows as one value: a list for each column, in which a row has the same place. */
export type ColumnLists<Row> = { readonly [Name in keyof Row]: readonly Row[Name][] }

/** How a statement hands over some rows, and how they are read. */
export interface ColumnForm<Row> {
  /** An aggregate of the rows, in their order. */
  readonly select: string
  read(written: Written): ColumnLists<Row>
}

/** What the server has written: numbers alone, or together with lists of texts; null: there are no rows. */
export type Written = string | readonly [string | null, ...(readonly (string | null)[] | null)[]] | null

export type RowOf<Form> = Form extends ColumnForm<infer Row> ? Row : never

interface Column<Value> {
  readonly sql: string
  readonly isText?: true
  /** Not set: the number is the value. */
  readonly of?: (number: number) => Value
}

/**
 * The numbers of all rows stand in one text, row by row; each column of texts is a list of its own. For each list that a statement
 * has, the server must be set up, and names that stand in each row cost as much to write and to read as what they name.
 */
export function columnForm<Row>(columns: { readonly [Name in keyof Row]: Column<Row[Name]> }): ColumnForm<Row> {
  const all = Object.entries<Column<unknown>>(columns)
  const numbers = all.filter(([, { isText }]) => !isText)
  const texts = all.filter(([, { isText }]) => isText)
  const together = `string_agg(concat_ws(',', ${numbers.map(([, { sql }]) => sql).join(', ')}), ',')`
  const lists = texts.map(([, { sql }]) => `json_agg(${sql})`)

  return {
    select: texts.length === 0 ? together : `json_build_array(${[together, ...lists].join(', ')})`,
    read(written) {
      const [row, ...listed] = typeof written === 'string' || written === null ? [written] : written
      const values: readonly number[] = row === null ? [] : JSON.parse(`[${row}]`)
      const read: Record<string, readonly unknown[]> = {}
      numbers.forEach(([name, { of }], first) => {
        const list: number[] = []
        for (let place = first; place < values.length; place += numbers.length) list.push(valueAt(values, place))
        read[name] = of ? list.map(of) : list
      })
      texts.forEach(([name], place) => {
        read[name] = listed[place] ?? []
      })
      return read as ColumnLists<Row> // each column is one of it
    },
  }
}

export function number(sql: string): Column<number> {
  return { sql }
}

export function numberOrNull(sql: string): Column<number | null> {
  return { sql: `coalesce(${sql}::text, 'null')` }
}

export function truth(sql: string): Column<boolean> {
  return { sql: `(${sql})::int`, of: (number) => number === 1 }
}

/** A point in time, in milliseconds: so many it has where it is stored; the server counts in fractions of a second. */
export function moment(sql: string): Column<number> {
  return { sql: `(date_part('epoch', ${sql}) * 1000)::bigint` }
}

export function text<Text extends string = string>(sql: string): Column<Text> {
  return { sql, isText: true }
}

export function textOrNull(sql: string): Column<string | null> {
  return { sql, isText: true }
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
