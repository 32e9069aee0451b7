/**
 * Whether a key of a table is there, as part of a statement that lists others. With `exists` the planner may rather read all
 * rows of one person first, however many there are, and look a single page up in them. No two rows may match.
 */
export function hasRow(fromWhere: string): string {
  return `(select true from ${fromWhere}) is true`
}
