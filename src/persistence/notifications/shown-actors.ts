/** The people whom moderators block, read once for a statement by the partial index `people_restricted`. `offset 0` keeps the index. */
const blockedPeople = `
  select blocked.id
  from (select people.id, people.restriction from people where people.restriction is not null offset 0) as blocked
  where blocked.restriction = 'block'`

/** SQL condition: moderators do not block this person. */
export function isActorShown(personId: string): string {
  return `(${personId} in (${blockedPeople})) is not true`
}

/**
 * SQL condition on a row of `notifications`: not all of its actors are blocked by moderators. Scalar subqueries instead of `exists`: for
 * `exists` the planner may read all actors of all notifications.
 */
export const HAS_SHOWN_ACTOR = `(
  (select true from notification_actors as actors
   where actors.notification_id = notifications.id and ${isActorShown('actors.person_id')} limit 1) is true
  or (select true from notification_actors as actors where actors.notification_id = notifications.id limit 1) is null
)`
