/** Rows with the same value of a property. */
export interface GroupedCount {
  /** The number of the property among the requested ones. */
  readonly property: number
  /** Null: unknown. */
  readonly value: string | null
  readonly count: number
}

/** Counts the rows of a list by each of these SQL expressions; the list, named `counted` with these columns, is read once. */
export function countEachSql(expressions: readonly string[]) {
  const each = expressions.map((_, index) => {
    return `select ${index} as property, value${index} as value, count(*)::integer as count from counted group by value${index}`
  })
  return {
    columns: expressions.map((expression, index) => `${expression} as value${index}`).join(', '),
    counts: each.join(' union all '),
  }
}
