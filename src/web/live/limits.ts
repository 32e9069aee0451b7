/** Event streams, which clients keep open for hours. */
export const LIVE_LIMITS = {
  /** Per process; the other connections are for requests. */
  listeners: 1_500,
  /** Phones, tablets, and connections that a client forgot to close. */
  listenersOfUser: 20,
  /** Proxies close silent connections after a minute, some after half a minute. */
  heartbeatMs: 20_000,
  /** The stream of a revoked token ends within this time; it sends no event from the moment of revocation. */
  tokensAgainMs: 30_000,
  /** Written but not read by the client. Further events wait in the database until the client has read them. */
  unsentBytes: 64 * 1024,
  /** Events written between two checks of `unsentBytes`. The largest post has a few hundred kilobytes. */
  eventsPerBatch: 10,
  /** A client that reads nothing for this time has lost its connection. */
  drainMs: 30_000,
  /** Events searched for a client that reconnects. A client that missed more should read the lists. */
  maxMissedEvents: 5_000,
  /** Clients that catch up at the same time; each uses a database connection. */
  maxConcurrentCatchUps: 2,
  /** Batches of events that are read for clients at the same time; each uses a database connection. */
  maxConcurrentReads: 3,
  /** Retry while the database is unavailable. */
  againAfterMs: 1_000,
  /** A pod without a database logs one line in this time, not one for each retry. */
  reportIntervalMs: 60_000,
  /** Sent to clients: minimum delay before a reconnect, and its random spread. */
  retryMs: 2_000,
  /** Random spread of reconnections: after a restart all clients reconnect. */
  retrySpreadMs: 3_000,
} as const

export type LiveLimits = { readonly [Name in keyof typeof LIVE_LIMITS]: number }
