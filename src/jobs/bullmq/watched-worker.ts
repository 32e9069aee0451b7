import { setTimeout as pause } from 'node:timers/promises'
import { type IQueueBackend, type Job, type JobJson, type JobProgress, Worker } from 'bullmq'

const AFTER_TROUBLE = 200

type AnyBackendJob = Job<unknown, void, string, JobProgress>

/** A worker that can say when it last heard from its queue. */
export class WatchedWorker extends Worker<unknown, void, string, IQueueBackend, JobProgress, 'shared'> {
  heardAt = Date.now()

  /** PostgreSQL would let an idle worker sleep for an hour. */
  override get maximumBlockTimeout(): number {
    return this.opts.drainDelay ?? super.maximumBlockTimeout
  }

  protected override async moveToActive(token: string, name?: string): Promise<AnyBackendJob> {
    try {
      return await super.moveToActive(token, name)
    } catch (error) {
      await pause(AFTER_TROUBLE) // BullMQ asks again at once, as fast as it is refused
      throw error
    }
  }

  /** Every answer of the queue comes by here, also "nothing to do". */
  protected override async nextJobFromJobData(
    jobData?: JobJson,
    jobId?: string,
    token?: string,
  ): Promise<AnyBackendJob> {
    this.heardAt = Date.now()
    return super.nextJobFromJobData(jobData, jobId, token)
  }
}
