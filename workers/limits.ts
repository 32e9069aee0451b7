/** Background work of a worker. */
export const WORK_LIMITS = {
  /** Starts of a job whose process died while running it; it runs alone since then. */
  startsAlone: 5,
  /** Overdue rows per run of the sweeper. */
  sweptRows: 1_000,
  /** Jobs in a queue above which the sweeper adds none. */
  sweptInto: 5_000,
} as const
