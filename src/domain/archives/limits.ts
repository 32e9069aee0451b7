/** Archives of accounts. */
export const ARCHIVE_LIMITS = {
  /** Exports of each kind that a person can have made a day. */
  exportsADay: 3,
  /** Days for which the file of an export is kept. */
  exportDays: 14,
  /** Attempts of an export whose worker dies. */
  exportAttempts: 3,
  /** Seconds without a heartbeat until the worker of an export counts as dead. */
  exportWorkerSeconds: 60,
} as const
