/** The queue did not acknowledge or answer in time. It may have the job all the same. */
export class QueueUnavailable extends Error {
  override name = 'QueueUnavailable'
}
