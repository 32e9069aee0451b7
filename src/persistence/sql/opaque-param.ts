/**
 * An SQL expression for a parameter whose value the planner cannot see, so that PostgreSQL keeps the generic plan of a prepared statement.
 *
 * Where the planner sees a value (an id, a limit, the length of an array), it may find a custom plan cheaper and plan each execution
 * anew. Planning takes longer than reading a page, and several times as long as storing a message.
 */
export function opaqueParam(placeholder: string, type: string): string {
  return `(select ${placeholder}::${type})`
}
