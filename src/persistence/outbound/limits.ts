/** Deliveries and subscriptions that are stored for other pods. */
export const UNDELIVERED_LIMITS = {
  /** A pod that is offline for longer gets nothing new. */
  asleepAfterDays: 14,
  /** Age of a delivery. A pod that is back receives younger deliveries. */
  expiresAfterDays: 14,
  /** For these days a message about a post is stored, with the pods at which it has arrived. */
  reportDays: 14,
  /** Waiting relays for a pod that has never answered. */
  relaysOfNeverAnsweredPod: 5,
  /** Waiting relays and retractions for a pod, up to which interactions of blocked people there are answered with a retraction. */
  retractionsToBlocked: 1_000,
  /** Waiting participations for a pod that has accepted one before; and one for each of its authors. */
  participationsWaiting: 5_000,
  /** Subscriptions to one post from pods that have never answered. */
  participantsOfNeverAnsweredPods: 100,
} as const
