import { INBOUND_LIMITS } from '../limits.js'

/** Clamps a time that another pod claims: not in the future, and not before the network existed. */
export function plausibleTime(claimed: Date, acceptedAt: Date, now: Date): Date {
  if (claimed.getTime() > now.getTime() + INBOUND_LIMITS.clockSkewMs) return now
  return claimed < INBOUND_LIMITS.oldestPost ? acceptedAt : claimed
}
