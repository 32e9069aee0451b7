/** Selects the id of the person with this guid, as a scalar subquery. Null: the person is unknown, closed or blocked. */
export function openPersonIdSql(guid: string): string {
  return `select people.id from people where people.guid = ${guid} and people.closed_at is null and people.restriction is distinct from 'block'`
}
