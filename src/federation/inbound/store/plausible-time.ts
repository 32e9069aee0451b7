import { LOOKUP_LIMITS } from '../../../limits.js'

/** When something was written, as far as another pod can be believed: not in the future, and not before there was a network. */
export function plausibleTime(told: Date, acceptedAt: Date, now: Date): Date {
  if (told.getTime() > now.getTime() + LOOKUP_LIMITS.clockSkewMs) return now
  return told < LOOKUP_LIMITS.oldestPost ? acceptedAt : told
}
