/** Responses to fetch and NodeInfo requests of other pods. */
export const SERVE_LIMITS = {
  /** Cached signed envelopes for fetch requests. */
  envelopes: 1_000,
  /** Bytes of the cached envelopes: one may have megabytes. */
  envelopeBytes: 32 * 1024 * 1024,
  /** Age of a cached envelope. A photo may be removed from its post and a root may be deleted; nothing else in an envelope changes. */
  envelopeAgeMs: 60_000,
  /** Signatures that wait or run. They take a fifth of a second on two threads. */
  signaturesUnderWay: 64,
  /** Age of the counts of users and posts in NodeInfo. Counting reads whole tables. */
  usageAgeMs: 60 * 60 * 1_000,
  /** Whether sign-ups need an approval depends on settings and attendance; NodeInfo may be a few seconds late. */
  approvalAgeMs: 5_000,
} as const
