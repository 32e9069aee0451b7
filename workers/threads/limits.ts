/** Threads for private-key work, per process. Their number is a setting. */
export const THREAD_LIMITS = {
  /** Tasks waiting for a thread. A signature takes some milliseconds and its timeout starts here, so later tasks would time out. */
  tasksQueued: 200,
  /** Parsing one document of another pod, including waiting for a thread. The longest legal document takes some milliseconds. */
  documentMs: 10_000,
  /** Generation of a key pair. The time to find two primes of 2048 bits varies by an order of magnitude. */
  keyPairMs: 60_000,
  /** Making a signature, including waiting for a thread. HTTP clients time out at about the same time. */
  signatureMs: 10_000,
  /** A task of envelopes, including waiting for a thread. Shorter than the deadline of a job, which would hide the cause. */
  envelopesMs: 30_000,
  /** Memory of a thread for objects that outlive a task. */
  oldMegabytes: 128,
  /** Memory of a thread for new objects. They are garbage when the task ends, so that more memory would save no time. */
  youngMegabytes: 16,
} as const
