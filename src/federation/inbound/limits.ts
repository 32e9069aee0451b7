/** Processing of received messages. */
export const INBOUND_LIMITS = {
  /** Parsed public keys, each of a few kilobytes. */
  keysCached: 10_000,
  /** Clocks of other pods may be wrong; times further in the future are not accepted. */
  clockSkewMs: 5 * 60_000,
  /** The network did not exist before. */
  oldestPost: new Date('2000-01-01T00:00:00Z'),
  /** Moves of one person, one after the other; the last one is refused. */
  movesInARow: 10,
  /** Days for which late comments, likes and votes for an account that has moved away are forwarded: another pod may not know of the move. */
  forwardedDays: 400,
  /** Late comments, likes and votes of authors of one pod that are forwarded in 24 hours. */
  forwardedOfPodADay: 1_000,
  /** Age of a fetched post or comment, in days, up to which people are notified of it. Pods try to deliver a message as long. */
  maxNotifiedAgeDays: 14,
  /** Traces in the log line of a batch, which may have 256 messages. */
  tracesOfLogLine: 20,
} as const

/** Rejected messages that an operator can examine. */
export const QUARANTINE_LIMITS = {
  /** Rejected messages that are stored: more than an operator looks through. */
  maxMessages: 10_000,
  /** Bytes of all stored payloads. */
  maxBytes: 64 * 1024 * 1024,
  /** A frequent fault does not displace a rare one. */
  rowsOfFault: 200,
  /** Rows of one claimed host; private messages count by the network that posted them. */
  rowsOfHost: 50,
  /** Maximum of a stored message. The beginning of a longer one is stored, and it cannot be replayed. */
  payloadBytes: 64 * 1024,
  /** The stored beginning of a longer message: enough to recognise it. */
  beginningCharacters: 4 * 1024,
  /** Stored messages per process. Beyond it a random sample is stored. */
  insertsPerSecond: 10,
  /** Days for which a rejected message is stored: time to look into the question of another operator. */
  keptDays: 14,
} as const
