import { setTimeout as pause } from 'node:timers/promises'
import {
  type BackendFactory,
  type IQueueBackend,
  type Job,
  type JobJson,
  type JobProgress,
  Worker,
  type WorkerOptions,
} from 'bullmq'

const AFTER_ERROR_MS = 200

type AnyBackendJob = Job<unknown, void, string, JobProgress>
type AnyBackendWorker = Worker<unknown, void, string, IQueueBackend, JobProgress, 'shared'>

/** A worker that records when it last received an answer of its queue. */
export interface ObservedWorker extends Pick<AnyBackendWorker, 'close' | 'isRunning'> {
  concurrency: number
  /** Milliseconds since the epoch. */
  lastAnswerAt: number
}

interface ObservedWorkerOptions {
  readonly backend: BackendFactory<IQueueBackend, 'shared'>
  readonly options: WorkerOptions<'shared'>
  /** False: the worker of the library, which does not detect that its queue no longer answers. */
  readonly isTuned: boolean
}

export function openObservedWorker(
  name: string,
  run: (job: Job) => Promise<void>,
  { backend, options, isTuned }: ObservedWorkerOptions,
): ObservedWorker & Pick<AnyBackendWorker, 'on'> {
  return isTuned ? new TunedWorker(name, run, options, backend) : new PlainWorker(name, run, options, backend)
}

class TunedWorker
  extends Worker<unknown, void, string, IQueueBackend, JobProgress, 'shared'>
  implements ObservedWorker
{
  lastAnswerAt = Date.now()

  /** Seconds for which an idle worker waits. On PostgreSQL the library would let it wait for an hour. */
  override get maximumBlockTimeout(): number {
    return this.opts.drainDelay ?? super.maximumBlockTimeout
  }

  protected override async moveToActive(token: string, name?: string): Promise<AnyBackendJob> {
    try {
      return await super.moveToActive(token, name)
    } catch (error) {
      await pause(AFTER_ERROR_MS) // the library retries at once, as fast as requests fail
      throw error
    }
  }

  /** Called for every answer of the queue, even without a job. */
  protected override async nextJobFromJobData(
    jobData?: JobJson,
    jobId?: string,
    token?: string,
  ): Promise<AnyBackendJob> {
    this.lastAnswerAt = Date.now()
    return super.nextJobFromJobData(jobData, jobId, token)
  }
}

class PlainWorker
  extends Worker<unknown, void, string, IQueueBackend, JobProgress, 'shared'>
  implements ObservedWorker
{
  get lastAnswerAt(): number {
    return Date.now()
  }
  set lastAnswerAt(_time: number) {}
}
