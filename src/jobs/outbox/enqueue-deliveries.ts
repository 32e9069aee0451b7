import type { Pod } from '../../pod/pod.js'
import { deliverJob, deliverSlowlyJob } from '../definitions.js'
import type { AddOptions } from '../queues/add-jobs.js'
import { afterCommit } from './after-commit.js'

/** A pod with due deliveries. Pods that have answered before do not wait behind those that have not. */
export interface DuePod {
  readonly podId: number
  readonly proven: boolean
}

const ENQUEUED_WITHIN = 500
/** The client builds a bulk request at once, which blocks the event loop: for so many jobs some 40 ms. */
const ENQUEUED_AT_ONCE = 500

/** Enqueues deliveries after the commit of the transaction that has written them; the sweeper adds lost jobs. */
export const enqueueDeliveriesAfterCommit = afterCommit<DuePod>((pod, duePods) =>
  enqueueDeliveries(pod, duePods, { within: ENQUEUED_WITHIN }),
)

/** Adds one job for each pod, and one more for a pod with a running job, which may have read its deliveries already. */
export async function enqueueDeliveries(
  { jobs }: Pick<Pod, 'jobs'>,
  duePods: readonly DuePod[],
  options?: AddOptions,
): Promise<void> {
  const lanes = [
    [deliverJob, duePods.filter(({ proven }) => proven)],
    [deliverSlowlyJob, duePods.filter(({ proven }) => !proven)],
  ] as const
  await Promise.all(
    lanes.map(async ([job, pods]) => {
      const ids = [...new Set(pods.map(({ podId }) => podId))]
      const each = ids.map((podId) => ({ data: { podId }, unique: `pod-${podId}` }))
      for (let done = 0; done < each.length; done += ENQUEUED_AT_ONCE) {
        await jobs.enqueueEach(job, each.slice(done, done + ENQUEUED_AT_ONCE), options)
      }
    }),
  )
}
