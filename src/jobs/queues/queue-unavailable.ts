/** The queue did not acknowledge or answer in time. It may have the job all the same. */
export class QueueUnavailable extends Error {
  override name: string = 'QueueUnavailable'
}

/** An operator drains the queue: it accepts no jobs. */
export class QueueDrained extends QueueUnavailable {
  override name = 'QueueDrained'
}
