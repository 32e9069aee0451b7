/** Counts of unread items of a user, which clients poll. */
export const UNREAD_LIMITS = {
  /** Notifications that are counted, and conversations. */
  maxCounted: 1_000,
} as const
