/** The id of somebody who is here and has not left, as part of a statement that lists what is theirs; else null. */
export function selectOpenPersonId(guid: string): string {
  return `select people.id from people where people.guid = ${guid} and people.closed_at is null`
}
