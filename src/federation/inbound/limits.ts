/** Processing of received messages. */
export const INBOUND_LIMITS = {
  /** Parsed public keys, each of a few kilobytes. */
  keysKept: 10_000,
  /** Clocks of other pods may be wrong; times further in the future are not accepted. */
  clockSkewMs: 5 * 60_000,
  /** The network did not exist before. */
  oldestPost: new Date('2000-01-01T00:00:00Z'),
  /** Moves of one person, one after the other; the last one is refused. */
  movesInARow: 10,
} as const

/** Rejected messages that an operator can examine. */
export const QUARANTINE_LIMITS = {
  /** More than an operator looks through. */
  rows: 10_000,
  /** Of their payloads. */
  bytes: 64 * 1024 * 1024,
  /** A frequent fault does not displace a rare one. */
  rowsOfFault: 200,
  /** Of one claimed host; private messages count by the network that posted them. */
  rowsOfHost: 50,
  /** Of a longer message only the first four kilobytes are stored, and it cannot be replayed. */
  payloadBytes: 64 * 1024,
  /** In each process. Beyond it a random sample is stored. */
  insertsPerSecond: 10,
  /** Time to look into the question of another operator. */
  days: 14,
} as const
