/** Actions, reports and lists of moderators. */
export const MODERATION_LIMITS = {
  /** A reason and a note are read in lists. */
  reasonCharacters: 2_000,
  /** Items of a page of the admin API without and with `per_page`. */
  pageItems: 50,
  mostPageItems: 100,
} as const
