/** Background work of a worker. */
export const WORK_LIMITS = {
  /** Starts of a job that runs alone, because its process died while running it. */
  startsOfSuspect: 5,
  /** Overdue rows per run of the sweeper. */
  sweptRows: 1_000,
  /** Jobs in a queue above which the sweeper adds none. */
  maxJobsBeforeSweepStops: 5_000,
} as const

/** Relays and participations while a burst of received messages is stored. */
export const BURST_LIMITS = {
  /** Messages of a process that are not stored yet: with more than a full batch in addition to the running ones, it is a burst. */
  maxUnstoredMessages: 256,
  /** Between two jobs of a burst few messages wait for a moment. */
  lastsMs: 100,
  /** How often relays and participations check whether the burst is over. */
  pollIntervalMs: 50,
  /** Relays are not delayed for longer. */
  maxWaitMs: 5_000,
} as const
