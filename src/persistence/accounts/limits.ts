/** Counts on the page `/settings/data` and in its JSON. */
export const OWN_DATA_LIMITS = {
  /** Entries of the audit log; staff may have caused any number of them. */
  auditEntriesCounted: 10_000,
} as const
