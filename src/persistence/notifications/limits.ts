/** Counts of what a user has not read, which clients poll. */
export const UNREAD_LIMITS = {
  /** Notifications that are counted, and conversations. */
  counted: 1_000,
} as const
