/** Lookups of people and links without an account. */
export const ANONYMOUS_LOOKUP_LIMITS = {
  /** How long a request waits for a worker. Then it gets a page that reloads itself. */
  waitMs: 2_000,
  /** How often a waiting request checks whether the job has ended. */
  pollIntervalMs: 100,
  /** Seconds until such a page reloads itself. */
  reloadSeconds: 3,
  /** Reloads of a waiting page: longer than `discoveryMs` in all, so that the lookup has ended or is lost. */
  maxReloads: 5,
  /** Per network address, and in total; each web process counts separately. */
  perMinuteOfAddress: 30,
  /** In total: as many as ten addresses that use their whole limit. */
  perMinuteInTotal: 300,
  /** The period of both. */
  perSeconds: 60,
  /** Network addresses counted at the same time. */
  sources: 20_000,
  /** Waiting requests in one web process. */
  maxWaitingRequests: 32,
  /** Concurrent lookups in one worker, and those of one host. */
  maxConcurrent: 32,
  /** One slow host cannot use all of them. */
  maxConcurrentOfHost: 4,
  /** A user is waiting, and the other pod may be slow. */
  discoveryMs: 8_000,
  /** WebFinger of a visitor who wants to follow from another pod; web requests it while the visitor waits. */
  followUrlMs: 3_000,
} as const

/** Lookups of people, entities and pods. */
export const DISCOVERY_LIMITS = {
  /** A failed lookup is not repeated by every request. */
  failureRememberedMs: 60_000,
  /** Entries in each process. */
  failuresRemembered: 10_000,
  /** Maximum age of a name or a picture. */
  personFreshMs: 24 * 60 * 60 * 1_000,
  /** Moves that one lookup follows, from each account to the next: as many as a person may have in a row. */
  movesFollowed: 10,
  /** Time for the front page of a pod, including its rendering. */
  frontPageMs: 12_000,
  /** Redirects of a front page: from http to https, and from the host to its page. */
  frontPageRedirects: 3,
  /** The length that browsers and other pods accept. */
  urlCharacters: 2_048,
} as const
