/** Processing of received messages. */
export const INBOUND_LIMITS = {
  /** Parsed public keys, each of a few kilobytes. */
  keysKept: 10_000,
  /** Clocks of other pods may be wrong; times further in the future are not accepted. */
  clockSkewMs: 5 * 60_000,
  /** The network did not exist before. */
  oldestPost: new Date('2000-01-01T00:00:00Z'),
} as const
