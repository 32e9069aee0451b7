/** Threads for private-key work, per process. Their number is a setting. */
export const THREAD_LIMITS = {
  /** Tasks waiting for a thread. A signature takes some milliseconds and its timeout starts here, so later tasks would time out. */
  tasksQueued: 200,
  /** Parsing one document of another pod, including waiting for a thread. The longest legal document takes some milliseconds. */
  documentMs: 10_000,
} as const
