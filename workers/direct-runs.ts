import type { AnyJob } from '../src/jobs/definitions.js'
import { groupCommit } from '../src/jobs/group-commit.js'
import type { DirectRun } from '../src/jobs/outbox/direct-runs.js'
import { AlreadyDone, type JobContext, jobOfRow } from '../src/jobs/outbox/outbox.js'
import type { Pod } from '../src/pod/pod.js'
import { withDeadline } from './deadline.js'
import { type Handler, tracedPod } from './run-job.js'

/** Work of outbox rows that needs no job in the process that has written the rows. */
export interface DirectHandler {
  readonly job: AnyJob
  /** Rows that may run at a time; the others get jobs. */
  readonly atOnce: number
  open(pod: Pod, limits: DirectLimits): DirectRun
}

/** Deliveries that need no job in the process that has written them. */
export interface DirectDelivery {
  /** Pods that may be delivered to at a time; the others get jobs. */
  readonly atOnce: number
  run(pod: Pod, podId: number, signal: AbortSignal): Promise<void>
}

interface DirectLimits {
  /** Milliseconds a run has. */
  readonly deadline: number
  readonly stopping: AbortSignal
}

/**
 * Runs each row with the handler of its job, which must finish the row in its transaction: the row is not read before. A failure has
 * no effect but that the row gets a job.
 */
export function runEach(handle: Handler): DirectHandler['open'] {
  return (pod, { deadline, stopping }) =>
    async ({ id, data, trace }) => {
      const work = jobOfRow(pod.db, id, data, trace)
      await unlessDone(() =>
        // The handler belongs to the name of the row.
        withDeadline(deadline, stopping, (signal) =>
          handle(tracedPod(pod, work), work as JobContext as JobContext<never>, signal),
        ),
      )
    }
}

/** Runs rows that are written meanwhile together, with one call. */
export function runTogether(
  items: number,
  handleAll: (pod: Pod, outboxIds: readonly number[]) => Promise<void>,
): DirectHandler['open'] {
  return (pod, { deadline, stopping }) => {
    const run = groupCommit({ atOnce: 1, items }, (ids: readonly number[]) =>
      withDeadline(deadline, stopping, () => handleAll(pod, ids)),
    )
    return ({ id }) => run([id])
  }
}

async function unlessDone(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof AlreadyDone)) throw error
  }
}
