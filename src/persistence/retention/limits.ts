/** Dead letters of this pod's own work, deliveries included. Those of received messages have bounds of their own. */
export const DEAD_LETTER_LIMITS = {
  /** Rows: a pod that is away for 14 days leaves one for each message to it. */
  maxRows: 100_000,
  /** Their payloads and encrypted envelopes. */
  maxBytes: 1024 * 1024 * 1024,
} as const
