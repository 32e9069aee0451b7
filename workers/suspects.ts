import type { Job } from 'bullmq'
import { FailedJob } from './failed-job.js'
import { WORK_LIMITS } from './limits.js'
import { timesPutBack } from './put-back.js'

/** Whether the job was running when a worker died: a run that neither succeeded, failed nor put the job back ended with its worker. */
export function isSuspect(job: Job): boolean {
  return job.attemptsStarted - 1 - job.attemptsMade - timesPutBack(job) > 0
}

/** Runs suspects one at a time. */
export type SuspectQueue = (job: Job, run: () => Promise<void>) => Promise<void>

/**
 * Many jobs run when a worker dies, and one of them is the cause. So suspects run one at a time in a process. Each start is noted in
 * the job before the run and removed after it; a job with too many notes is a dead letter.
 */
export function openSuspectQueue(): SuspectQueue {
  let last: Promise<unknown> = Promise.resolve()
  return (job, run) => {
    const turn = last.then(() => runSuspect(job, run))
    last = turn.catch(() => {})
    return turn
  }
}

async function runSuspect(job: Job, run: () => Promise<void>): Promise<void> {
  const { suspectStarts: starts = 0 } = job.data
  if (starts >= WORK_LIMITS.startsOfSuspect) throw new FailedJob('crashed', 'dead')
  await job.updateData({ ...job.data, suspectStarts: starts + 1 })
  try {
    await run()
  } finally {
    await job.updateData({ ...job.data, suspectStarts: starts }) // with what the run has stored
  }
}
