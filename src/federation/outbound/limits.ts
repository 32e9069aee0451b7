/** Deliveries to other pods. The values that other pods notice are those of the protocol. */
export const DELIVERY_LIMITS = {
  /** Refusals of one delivery: about seventeen hours. */
  maxRefusals: 10,
  /** Refusals of a delivery about sharing, which matters longer than a post: about thirteen days. */
  maxRefusalsOfContact: 20,
  /** Failures in a row after which the delay of a pod stays the same: about six hours. */
  failuresUntilMaxDelay: 9,
  /** Rows of one pod read at a time. An envelope may have megabytes. */
  rowsPerBatch: 20,
  /** Time in which the relays and participations of a round start. A message of a local user waits for the end of the round. */
  relayRoundMs: 250,
  /** Relays and participations of such a round while local users write: two for each concurrent request. */
  relaysPerRoundWhileLocalUsersWrite: 8,
  /** The maximum pause after such a round while local users write. A shorter round has a pause as long as itself. */
  relayPauseMs: 60,
  /** Local users write if a message of theirs was sent within this time. */
  localUsersRecentMs: 2_000,
  /** Reachable pods that a process delivers to at the same time. */
  maxConcurrentPods: 128,
  /** Time in a slot after which a pod passes the slot on and continues: it answers slowly, or much is due. */
  slotMs: 250,
  /** Pods that continue in this way at the same time. */
  maxPodsWithoutSlot: 512,
  /** The maximum time for which an unproven pod waits while proven ones wait for slots. */
  unprovenWaitMs: 2_000,
  /** Concurrent deliveries to one pod, after a first success. The HTTP client has the same limit. */
  maxConcurrent: 4,
  /** Relays per dispatch; each may have hundreds of deliveries. */
  relaysPerBatch: 32,
  /** Time after which a pod yields its slot and is queued again. A last exchange still ends before the deadline of the job. */
  runMs: 12_000,
  /** Time from the first byte to the status. */
  exchangeMs: 30_000,
  /** Proven pods that may use more than `silentAfterMs` for a first attempt. If there are more, they yield. */
  maxConcurrentSilentPods: 16,
  /** Time after which a pod that has not answered counts as silent. Most pods answer in less time. */
  silentAfterMs: 1_500,
  /** Time until another worker may serve the pod of a worker that died. Longer than a run with its last exchange. */
  leaseMs: 60_000,
  /** Traces in the log line of a round. */
  tracesOfLogLine: 20,
  /** Deliveries in a row that end in a redirect, before the pod is checked. */
  redirectsBeforeCheck: 3,
  /** Pods checked per run (a run per minute). */
  checksPerRun: 60,
  /** Hours since the last check of a pod that is checked again. */
  checkEveryHours: 24,
  /** Time between checks of an offline pod that has sent something. */
  recheckMinutes: 30,
} as const

export type DeliveryLimits = { readonly [Name in keyof typeof DELIVERY_LIMITS]: number }
