/** Lookups caused by received content. */
export const REFERENCE_LIMITS = {
  /** A reshare of a reshare, or a link in a linked post. A longer chain is probably an attack. */
  chainDepth: 5,
  /** Links to posts in one text; each is a fetch. */
  linksOfText: 10,
  /** A linked post, and the links in it. */
  linkDepth: 2,
  /** Entities fetched because of one message. Without a total, ten links per text on two levels are 110 requests. */
  fetchesOfMessage: 30,
  /** Unknown people mentioned in a text; each causes a lookup at a pod. */
  unknownPeopleOfText: 50,
} as const

/**
 * Waiting messages and dead letters. An unverified message names an unknown signer. Anyone can send any number of them, so their
 * limits are far below those of verified messages.
 */
export const WAITING_LIMITS = {
  /** How often one message may wait: a like for its comment, the comment for its post, the post for its author. */
  maxWaitsOfMessage: 3,
  /** How long a verified message waits each time. */
  waitSeconds: 6 * 3_600,
  /** Wait of a retraction for an unknown entity: longer than a batch takes, because another batch may be about to store the entity. */
  retractionWaitSeconds: 3_600,
  /** Verified messages in total. */
  maxVerifiedMessages: 500_000,
  /** The payloads of these messages. */
  maxVerifiedBytes: 1024 * 1024 * 1024,
  /** Verified messages of one host, a tenth of the total: one pod cannot displace the messages of the others. */
  maxMessagesOfHost: 50_000,
  /** The payloads of verified messages of one host: an eighth. */
  maxBytesOfHost: 128 * 1024 * 1024,
  /** Unverified messages in total. */
  maxUnverifiedMessages: 20_000,
  /** The payloads of these messages. */
  maxUnverifiedBytes: 64 * 1024 * 1024,
  /** Unverified messages that name one host, a twentieth: an invented host cannot displace the messages of others. */
  maxUnverifiedMessagesOfHost: 1_000,
  /** The payloads that name one host: a sixteenth. */
  maxUnverifiedBytesOfHost: 4 * 1024 * 1024,
  /** A message is long from here on. Nearly all legitimate messages are smaller. */
  longMessageBytes: 64 * 1024,
  /** Maximum of an unverified message: the first post of a new person may have the longest legal text. */
  maxUnverifiedMessageBytes: 2 * 1024 * 1024,
  /** Payloads of all long unverified messages. The oldest is dropped for a new one. */
  maxLongUnverifiedBytes: 32 * 1024 * 1024,
  /**
   * Waiting time of an unverified message if no pod is known at its host, or the known pod is offline. The three attempts of a lookup take
   * 5.5 minutes, longer if limits of this pod delay them.
   */
  unverifiedWaitSeconds: 20 * 60,
  /** Dead letters of received messages. Unverified ones are kept without payload. */
  maxDeadMessages: 100_000,
  /** Their payloads. */
  maxDeadBytes: 1024 * 1024 * 1024,
  /** How often the totals are checked. */
  pollIntervalMs: 10_000,
  /** Rows deleted by one statement. */
  rowsPerBatch: 1_000,
} as const

/** Lookups of unknown signers that unverified messages name. */
export const SIGNER_LIMITS = {
  /** New signers on hosts where no pod has answered, per network address and minute; each worker counts separately. */
  unverifiedOfSourcePerMinute: 600,
  /** Network addresses counted at the same time. */
  sources: 20_000,
  /** Concurrent lookups at one host; one until the host has answered. */
  maxConcurrent: 4,
  /** Lookup at a host without a known pod, or with an offline one. A host with a slower first answer would keep a slot from others. */
  unknownHostMs: 6_000,
  /** A pod that has answered before may be slow. */
  knownHostMs: 15_000,
  /** Attempts of one lookup. A host without a pod is probably invented. */
  attemptsAtUnknownHost: 3,
  /** A pod that has answered before may be offline for some hours. */
  attemptsAtKnownHost: 6,
  /** A restart takes seconds, a repair hours. */
  retrySeconds: [30, 300, 1_800, 7_200, 7_200],
  /** Delay for a host whose budget of the minute is used up. */
  busySeconds: 15,
  /** Time after which a host yields its slot and is queued again after all others. */
  runMs: 10_000,
} as const
