/** The read replica for lists. What it does not deliver in time is read from the primary. */
export const REPLICA_LIMITS = {
  /** A user who has written reads from the primary at least until the next check. */
  checkIntervalMs: 250,
  /** Longer than a busy process needs to return to a check. Clients wait this long for a frozen replica. */
  responseTimeoutMs: 1_500,
  /** Age of a list. A client that polls every few seconds does not notice it. */
  maxAgeMs: 5_000,
  /** For a connection, a statement and a response. With those of the primary they stay below what a client waits. */
  acquireTimeout: 1_000,
  /** A list takes milliseconds; a replica that needs seconds is overloaded. */
  statementTimeout: 2_000,
  /** Longer than `statementTimeout`, so that the server ends the statement first. */
  queryTimeout: 2_500,
} as const
