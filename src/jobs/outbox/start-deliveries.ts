import type { DuePod } from '../../persistence/outbound/due-deliveries.js'
import type { Services } from '../../services/services.js'
import { inChunks } from '../chunks.js'
import { deliverJob, deliverToUnprovenPodsJob } from '../definitions.js'
import type { AddOptions } from '../queues/add-jobs.js'
import { afterCommit } from './after-commit.js'

const ENQUEUED_WITHIN_MS = 500
/** The client builds a bulk request synchronously, which blocks the event loop: some 40 ms for this number of jobs. */
const ENQUEUE_BATCH_SIZE = 500
/**
 * Pods of one job; their deliveries share statements. The jobs have no deduplication key: a job would wait for the slowest pod of the job
 * before it.
 */
const PODS_IN_JOB = 64

/** Enqueues deliveries after the commit of the transaction that has written them; the sweeper adds lost jobs. */
export const startDeliveriesAfterCommit = afterCommit<DuePod>((services, duePods) =>
  startDeliveries(services, duePods, { withinMs: ENQUEUED_WITHIN_MS }),
)

/**
 * Starts deliveries to proven pods in this process, as far as it has capacity for them. Adds one job for each of the other pods, and
 * one more for a pod with a running job, which may have read its deliveries already. Several proven pods share a job, unless the jobs
 * are added again: then each pod has its own, which is not added twice.
 */
export async function startDeliveries(
  { jobs }: Pick<Services, 'jobs'>,
  duePods: readonly DuePod[],
  options: AddOptions = {},
): Promise<void> {
  const provenPodIds = idsOf(duePods.filter((duePod) => duePod.isProven))
  const remainingPods = options.mayExist ? provenPodIds : jobs.inProcessRuns.deliveries.start(provenPodIds)
  const unprovenPodIds = idsOf(duePods.filter((duePod) => !duePod.isProven))
  const isShared = remainingPods.length > 1 && !options.mayExist
  await Promise.all([
    isShared
      ? jobs.addAll(
          deliverJob,
          inChunks(remainingPods, PODS_IN_JOB).map((podIds) => ({ podIds })),
          options,
        )
      : enqueueForEach(jobs, deliverJob, remainingPods, options),
    enqueueForEach(jobs, deliverToUnprovenPodsJob, unprovenPodIds, options),
  ])
}

function idsOf(duePods: readonly DuePod[]): readonly number[] {
  return [...new Set(duePods.map(({ podId }) => podId))]
}

async function enqueueForEach(
  jobs: Services['jobs'],
  job: typeof deliverJob | typeof deliverToUnprovenPodsJob,
  ids: readonly number[],
  options: AddOptions,
): Promise<void> {
  const podJobs = ids.map((podId) => ({ data: { podIds: [podId] }, deduplicationKey: `pod-${podId}` }))
  for (const chunk of inChunks(podJobs, ENQUEUE_BATCH_SIZE)) await jobs.addEach(job, chunk, options)
}
