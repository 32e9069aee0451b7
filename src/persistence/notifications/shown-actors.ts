/** The people whom moderators restrict, read once for a statement by the partial index `people_restricted`. `offset 0` keeps the index. */
const RESTRICTED_PEOPLE_SQL = `
  select restricted.id from (select people.id from people where people.restriction is not null offset 0) as restricted`

/**
 * SQL condition on a row of `notification_actors`: what the actor did is not hidden, and moderators do not restrict the actor. A user
 * who follows a silenced actor sees them. Scalar subqueries instead of `exists`: for `exists` the planner may read all contacts.
 */
export function isActorShownSql(actors: string, userId: string): string {
  return `(
    not ${actors}.hidden and (
      (${actors}.person_id in (${RESTRICTED_PEOPLE_SQL})) is not true
      or (select true from people join contacts on contacts.person_id = people.id
          where people.id = ${actors}.person_id and people.restriction = 'silence' and contacts.user_id = ${userId}
            and contacts.receiving limit 1) is true
    )
  )`
}

/**
 * SQL condition on a row of `notifications`: one of its actors is shown, or it has none. Scalar subqueries instead of `exists`: for
 * `exists` the planner may read all actors of all notifications.
 */
export const HAS_SHOWN_ACTOR_SQL = `(
  (select true from notification_actors as actors
   where actors.notification_id = notifications.id and ${isActorShownSql('actors', 'notifications.user_id')} limit 1) is true
  or (select true from notification_actors as actors where actors.notification_id = notifications.id limit 1) is null
)`
