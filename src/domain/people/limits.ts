/** Searches for people. */
export const SEARCH_LIMITS = {
  /** Characters of a search for people: one matches nearly everyone. */
  minCharacters: 2,
  /** How long a user waits for another pod. A later result is available for the next search. */
  discoveryMs: 2_000,
  /** How often a search checks whether the job has stored the person. */
  pollIntervalMs: 100,
  /** Searches that wait for other pods in one web process, and those of one user. All others use only known people. */
  maxConcurrentRemoteLookups: 32,
  /** One user cannot use all of them. */
  maxConcurrentRemoteLookupsOfUser: 3,
  /** Each one is another joined table; planning takes seconds for a hundred. */
  filters: 10,
} as const
