/**
 * An SQL condition: a table has a row with this key. At most one row may match.
 *
 * A scalar subquery instead of `exists`: with `exists` the planner may build a hash of all rows of one person, of which there may be any
 * number, to check the few rows of a page.
 */
export function hasRowSql(fromWhere: string): string {
  return `(select true from ${fromWhere}) is true`
}
