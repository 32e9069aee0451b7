/** Writes of one user through the API, over all clients. The number of writes is a setting. */
export const WRITE_LIMITS = {
  /** The period of the setting; each web process counts separately. */
  perSeconds: 60,
  /** Users counted at the same time. */
  users: 20_000,
} as const
