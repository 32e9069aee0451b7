import type { Job } from 'bullmq'
import { WORK_LIMITS } from '../src/limits.js'
import { FailedJob } from './failed-job.js'

/** Was this job in hand when a worker died? Runs that neither succeeded nor failed took their worker with them. */
export function isSuspect(job: Job): boolean {
  return job.attemptsStarted - 1 - job.attemptsMade > 0
}

/** Lets a suspect run when no other one does. */
export type SuspectLine = (job: Job, run: () => Promise<void>) => Promise<void>

/**
 * Many jobs are in hand when a worker dies, and one of them is the cause. So suspects run one at a time in a process, each
 * start is noted in the job before and taken back after, and only these notes count against it.
 */
export function openSuspectLine(): SuspectLine {
  let line: Promise<unknown> = Promise.resolve()
  return (job, run) => {
    const turn = line.then(() => runAlone(job, run))
    line = turn.catch(() => {})
    return turn
  }
}

async function runAlone(job: Job, run: () => Promise<void>): Promise<void> {
  const { suspectStarts: starts = 0, ...data } = job.data
  if (starts >= WORK_LIMITS.startsAlone) throw new FailedJob('crashed', 'dead')
  await job.updateData({ ...data, suspectStarts: starts + 1 })
  try {
    await run()
  } finally {
    await job.updateData({ ...data, suspectStarts: starts })
  }
}
