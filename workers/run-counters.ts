import type { Job } from 'bullmq'
import type { QueueName } from '../src/jobs/queues/queue-names.js'
import type { RunningJob } from '../src/persistence/operations/processes.js'
import { countJob, recordJobWait } from './job-metrics.js'
import { isPutBack } from './put-back.js'

/** Counts what this process runs, for the metrics and for the end of the process. */
export interface RunCounters {
  /** Runs a job of a queue. */
  runJob(queue: QueueName, job: Job, run: (job: Job) => Promise<void>): Promise<void>
  /** Runs the work of an outbox row without a job. */
  runInProcess(queue: QueueName, name: string, run: () => Promise<void>): Promise<void>
  /** The jobs that run now, without their data. */
  runningJobs(): readonly RunningJob[]
  /** Resolves when no run without a job is left. The workers of the queue do not know these runs. */
  inProcessRunsEnded(): Promise<void>
}

export function openRunCounters(): RunCounters {
  const running = new Set<RunningJob>()
  const inProcessRuns = new Set<Promise<void>>()

  async function countRun(
    { queue, ...job }: Pick<RunningJob, 'name' | 'attempt'> & { readonly queue: QueueName },
    run: () => Promise<void>,
  ): Promise<void> {
    const entry = { queue, ...job, since: new Date().toISOString() }
    running.add(entry)
    const began = performance.now()
    try {
      await run()
      countJob(queue, 'done', performance.now() - began)
    } catch (error) {
      countJob(queue, isPutBack(error) ? 'put_back' : 'failed', performance.now() - began)
      throw error
    } finally {
      running.delete(entry)
    }
  }

  return {
    async runJob(queue, job, run) {
      recordJobWait(queue, Date.now() - (job.timestamp + job.delay))
      await countRun({ queue, name: job.name, attempt: job.attemptsMade + 1 }, () => run(job))
    },
    async runInProcess(queue, name, run) {
      const endOfRun = countRun({ queue, name, attempt: 1 }, run)
      inProcessRuns.add(endOfRun)
      await endOfRun.finally(() => inProcessRuns.delete(endOfRun))
    },
    runningJobs: () => [...running],
    async inProcessRunsEnded() {
      await Promise.allSettled(inProcessRuns)
    },
  }
}
