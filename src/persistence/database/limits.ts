import type { DatabaseLimits } from './database.js'

/** The connections of a web process. With a frozen server, clients get an error within six seconds. */
export const WEB_DATABASE_LIMITS = {
  /** Requests are short: more connections would only wait for each other in the server. */
  pool: 10,
  /** Below what a client waits. */
  acquireTimeoutMs: 3_000,
  /** A working server cancels the statement before the client gets its error. */
  statementTimeoutMs: 5_000,
  /** Longer than `statementTimeoutMs`, so that the server ends the statement first. */
  queryTimeoutMs: 5_500,
} as const satisfies DatabaseLimits

/** The connections of a worker process. */
export const WORKER_DATABASE_LIMITS = {
  /** Jobs mostly wait for sockets; the batches of messages and deliveries share statements. */
  pool: 20,
  /** A job waits rather than fails, within its deadline. */
  acquireTimeoutMs: 15_000,
  /** Statements over whole tables, such as those of the daily tasks, take seconds. */
  statementTimeoutMs: 20_000,
  /** Longer than `statementTimeoutMs`, and within the deadline of a job. */
  queryTimeoutMs: 30_000,
  /** Queue tables grow from none to fifty thousand rows within seconds; a plan made for the empty table would scan all of them. */
  indexesOnly: true,
} as const satisfies DatabaseLimits

/** The sweeper, which adds lost jobs again. */
export const SWEEP_LIMITS = {
  /** Age of the last run of any process. It runs every four seconds and records it every twenty. */
  staleSeconds: 45,
} as const

/** The read replica for lists. What it does not deliver in time is read from the primary. */
export const REPLICA_LIMITS = {
  /** A user who has written reads from the primary at least until the next check. */
  checkIntervalMs: 250,
  /** Longer than a busy process needs to return to a check. Clients wait this long for a frozen replica. */
  responseTimeoutMs: 1_500,
  /** Age of a list. A client that polls every few seconds does not notice it. */
  maxAgeMs: 5_000,
  /** Timeouts for a connection, a statement and a response. Added to those of the primary, they are shorter than the wait of a client. */
  acquireTimeoutMs: 1_000,
  /** A list takes milliseconds; a replica that needs seconds is overloaded. */
  statementTimeoutMs: 2_000,
  /** Longer than `statementTimeoutMs`, so that the server ends the statement first. */
  queryTimeoutMs: 2_500,
} as const
