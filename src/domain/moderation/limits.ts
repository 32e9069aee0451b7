/** Actions, reports and lists of moderators. */
export const MODERATION_LIMITS = {
  /** A reason and a note are read in lists. */
  reasonCharacters: 2_000,
  /** Of one user in `reportsPerSeconds`. */
  reports: 30,
  reportsPerSeconds: 3_600,
  /** Without an entry for so long a taken case is open again. */
  takenCaseSeconds: 86_400,
  /** Items of a page of the admin API without and with `per_page`. */
  pageItems: 50,
  mostPageItems: 100,
} as const
