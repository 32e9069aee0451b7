import { UNDELIVERED_LIMITS } from './limits.js'

/** SQL condition: the last delivery or check succeeded, within the last 7 days. */
export const POD_IS_PROVEN_SQL = `coalesce(pods.failures = 0 and pods.last_success_at > now() - interval '7 days', false)`

/** SQL condition: the pod has been offline for `asleepAfterDays`, or an operator has put it to sleep since it went offline. */
export const POD_IS_ASLEEP_SQL = `coalesce(pods.offline_since <= greatest(now() - interval '${UNDELIVERED_LIMITS.asleepAfterDays} days', pods.asleep_at), false)`

/** SQL condition: the delivery is older than the maximum age. */
export const DELIVERY_IS_EXPIRED_SQL = `deliveries.created_at <= now() - interval '${UNDELIVERED_LIMITS.expiresAfterDays} days'`

/** SQL condition: blocked pods receive the message too, so that what local users have deleted does not stay there. */
export function exemptFromBlocksSql(verb: string, record: string): string {
  return `(${verb} = 'retract' or ${record} = 'account_deletion')`
}

/** SQL condition: people whom moderators block receive the message too. `contact`: its end; a contact with them cannot begin. */
export function exemptForBlockedPeopleSql(verb: string, record: string): string {
  return `(${exemptFromBlocksSql(verb, record)} or ${record} = 'contact')`
}

/** SQL condition on `messages`, as `exemptFromBlocksSql`. */
export const EXEMPT_FROM_BLOCKS_SQL = exemptFromBlocksSql('messages.verb', 'messages.record')

/** SQL condition: an admin has paused deliveries and fetches. */
export const POD_IS_PAUSED_SQL = `coalesce(pods.paused_until > now(), false)`

/** SQL condition: the pod may be contacted now. It is neither asleep nor paused, nor in a pause after failures. */
export const POD_ACCEPTS_DELIVERIES_SQL = `(pods.next_try_at is null or pods.next_try_at <= now())
  and not ${POD_IS_PAUSED_SQL}
  and not ${POD_IS_ASLEEP_SQL}`
