/** The move of a person to another account. */
export const MOVE_LIMITS = {
  /** Comments, likes, votes and actors of notifications that are moved with the account. A job moves the others. */
  rowsWithAccount: 20_000,
  /** Rows moved by one statement, well within the time limit of a statement. */
  rowsPerChunk: 2_000,
} as const

export type MoveLimits = { readonly [Name in keyof typeof MOVE_LIMITS]: number }
