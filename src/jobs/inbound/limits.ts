/** Messages of other pods until they are stored. */
export const RECEIVE_LIMITS = {
  /** The largest legal message is a text of 65 535 character references in an encrypted envelope: about a megabyte. */
  bodyBytes: 8 * 1024 * 1024,
  /** Limits what a stalled or failed job holds. A larger message is a job of its own. */
  messagesPerJob: 128,
  /** Bytes per job, for long messages. */
  bytesPerJob: 256 * 1024,
  /** While two jobs are being added to the queue, the next one collects messages. */
  jobsUnderWay: 2,
  /** Time from the last byte of a message to its answer. After that the answer is 503, and the sender retries. */
  acknowledgedMs: 1_000,
  /** Messages in the queue, over all senders. */
  queuedMessages: 500_000,
  /** Messages of one source in a second that share jobs with those of others. Further ones have jobs of their own, which come later. */
  sharedMessagesPerSecond: 50,
  /** Messages in the queue beyond which messages are counted per source. */
  fairFromMessages: 1_000,
  /** Bytes in the queue beyond which messages are counted per source: few large messages are as much work. */
  fairFromBytes: 16 * 1024 * 1024,
  /** Messages of one source in a long queue. Further messages are queued after those of other sources. */
  messagesPerShare: 1_000,
  /** Messages of one source in a long queue. Further messages are refused. */
  messagesOfSource: 100_000,
  /** Bytes of one source in a long queue: a few messages of maximum size. */
  bytesPerShare: 16 * 1024 * 1024,
  /** Share of `INBOUND_BYTES` per source: at least four sources are needed to fill it. */
  bytesPercentOfSource: 25,
  /** Shares that all /64 networks of an IPv6 /48 have together. */
  sharesOfSite: 2,
  /** Sources counted at the same time. */
  sources: 100_000,
  /** How often each web process reads the length of the queue. */
  pollIntervalMs: 1_000,
  /** Retry-After when a sender, or all senders, have sent too much, and while an inbound queue is drained. */
  retryAfterSeconds: 120,
  /** Cached guids of local people, so that a private message needs no database query. A guid never changes. */
  recipients: 10_000,
  /** An account that was closed is noticed within this time; the worker rejects its messages before. */
  recipientAgeMs: 10 * 60_000,
  /** Guids in one database query. */
  recipientsPerQuery: 128,
  /** A longer private body is not examined before it is queued: eight megabytes of brackets would take a second. */
  examinedCharacters: 64 * 1024,
} as const

/** Long work, such as exports and imports of accounts, alongside received messages. */
export const BACKGROUND_LIMITS = {
  /** Jobs of received messages that wait. With more of them, long work pauses. */
  pauseAboveJobs: 100,
  /** How often long work reads the number of jobs. */
  pollIntervalMs: 2_000,
  /** The part of the time in which a worker makes an export; in the rest it waits (docs/measurements/exports.md). */
  exportShare: 0.2,
} as const
