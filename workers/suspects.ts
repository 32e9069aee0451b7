import type { Job } from 'bullmq'
import { FailedJob } from './failed-job.js'
import { WORK_LIMITS } from './limits.js'
import { timesPutBack } from './put-back.js'

/** Whether the job was running when a worker died: a run that neither succeeded, failed nor put the job back ended with its worker. */
export function isSuspect(job: Job): boolean {
  return job.attemptsStarted - 1 - job.attemptsMade - timesPutBack(job) > 0
}

/** Runs a suspect when no other suspect is running in this process. */
export type RunSuspect = (job: Job, run: () => Promise<void>) => Promise<void>

/**
 * Many jobs run when a worker dies, and one of them is the cause. So a process runs suspects one at a time. `suspectStarts` in the data of
 * the job counts the starts that ended with their process; at the limit the job becomes a dead letter.
 */
export function createSuspectRunner(): RunSuspect {
  let last: Promise<unknown> = Promise.resolve()
  return (job, run) => {
    const turn = last.then(() => runCountingStarts(job, run))
    last = turn.catch(() => {})
    return turn
  }
}

async function runCountingStarts(job: Job, run: () => Promise<void>): Promise<void> {
  const { suspectStarts: starts = 0 } = job.data
  if (starts >= WORK_LIMITS.startsOfSuspect) throw new FailedJob('crashed', 'dead')
  await job.updateData({ ...job.data, suspectStarts: starts + 1 })
  try {
    await run()
  } finally {
    await job.updateData({ ...job.data, suspectStarts: starts }) // with what the run has stored
  }
}
