import type { Pod } from '../../pod/pod.js'
import { deliverJob, deliverSlowlyJob } from '../definitions.js'
import type { AddOptions } from '../queues/add-jobs.js'
import { afterCommit } from './after-commit.js'

/** A pod with something due. Those that have proven to answer do not wait behind those that have not. */
export interface Knock {
  readonly podId: number
  readonly proven: boolean
}

const KNOCK_WITHIN = 500
/** A bulk add is made up in one go, and keeps everything else in the process waiting: of so many some 40 ms. */
const KNOCKS_AT_ONCE = 500

/** Has a worker deliver what this transaction has written, after its commit; what gets lost there, the sweeper adds. */
export const knockAfter = afterCommit<Knock>((pod, knocks) => knock(pod, knocks, { within: KNOCK_WITHIN }))

/** One job for each pod, and one more for a pod that is being delivered to: it may have looked already. */
export async function knock(
  { jobs }: Pick<Pod, 'jobs'>,
  knocks: readonly Knock[],
  options?: AddOptions,
): Promise<void> {
  const lanes = [
    [deliverJob, knocks.filter(({ proven }) => proven)],
    [deliverSlowlyJob, knocks.filter(({ proven }) => !proven)],
  ] as const
  await Promise.all(
    lanes.map(async ([job, pods]) => {
      const ids = [...new Set(pods.map(({ podId }) => podId))]
      const each = ids.map((podId) => ({ data: { podId }, unique: `pod-${podId}` }))
      for (let done = 0; done < each.length; done += KNOCKS_AT_ONCE) {
        await jobs.enqueueEach(job, each.slice(done, done + KNOCKS_AT_ONCE), options)
      }
    }),
  )
}
