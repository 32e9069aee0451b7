/**
 * One rule for people whom moderators have silenced or blocked: what they do reaches only the users who follow them. Visitors follow no
 * people. `isRestrictedForSql` is for single rows (notifications, new conversations), `restrictedPeopleSql` for lists (streams).
 * `isRestrictedSql` is for readers without an account (public posts), and for live events of the main stream, whose readers are found
 * otherwise.
 */

/** The row of `contacts` by which a user follows a person, for `exists (select from …)` and `hasRowSql`. Unique index on both ids. */
export function followRowSql(userId: string, personId: string): string {
  return `contacts where contacts.user_id = ${userId} and contacts.person_id = ${personId} and contacts.receiving`
}

/** SQL condition on a row of `people`: they are restricted for this user. For single rows. */
export function isRestrictedForSql(userId: string, people: string): string {
  return `${people}.restriction is not null and not exists (select from ${followRowSql(userId, `${people}.id`)})`
}

/**
 * Selects the ids of all people who are restricted for this user, without the user. For lists: all are read once, by the partial index
 * `people_restricted`, which `offset 0` keeps.
 */
export function restrictedPeopleSql(userId: string, personId: string): string {
  return `
  select restricted.id
  from (select people.id from people where people.restriction is not null offset 0) as restricted
  where restricted.id <> ${personId} and not exists (select from ${followRowSql(userId, 'restricted.id')})`
}

/** SQL condition: the person is restricted for users who do not follow them, and for visitors. One lookup by the primary key. */
export function isRestrictedSql(personId: string): string {
  return `exists (select from people where people.id = ${personId} and people.restriction is not null)`
}
