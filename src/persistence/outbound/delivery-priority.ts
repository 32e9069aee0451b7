/** The place of a delivery in the line of its pod: lower numbers are sent first. */
export const DELIVERY_PRIORITY = {
  /** Messages of local users. */
  localUsers: 0,
  /** Comments, likes and votes of people of other pods under local posts, and their retractions. */
  relay: 1,
  /** Subscriptions to public posts of other pods that no local user requested. */
  participation: 2,
} as const

export type DeliveryPriority = (typeof DELIVERY_PRIORITY)[keyof typeof DELIVERY_PRIORITY]
