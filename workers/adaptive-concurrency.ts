import type { Job } from 'bullmq'
import type { InboundQueue } from '../src/jobs/queues/queue-names.js'
import { isMessageJob } from './messages-of-job.js'

interface JobLimits {
  /** Jobs that a worker runs at a time: at least, and at most while they carry few messages. */
  readonly min: number
  readonly max: number
  /** Messages of running jobs that fill all batches of the inbound runner. */
  readonly messages: number
}

const JOB_LIMITS: Readonly<Record<InboundQueue, JobLimits>> = {
  inbound: { min: 32, max: 256, messages: 768 },
  'inbound-private': { min: 8, max: 128, messages: 192 },
}

interface AdaptiveConcurrency {
  /** Returns the concurrency of the worker from now on. */
  begin(job: Job): number
  end(job: Job): void
}

/**
 * Runs more jobs at a time while they carry few messages. A quiet pod makes jobs of one message; when thousands of them wait, a batch is
 * worth its transaction only if many jobs run. A few full jobs carry as many messages. The concurrency grows with the running jobs, because
 * a worker starts no fetched job before it has fetched as many as it may.
 */
export function openAdaptiveConcurrency(queue: InboundQueue): AdaptiveConcurrency {
  const { min, max, messages: fullLoad } = JOB_LIMITS[queue]
  let jobs = 0
  let messages = 0
  return {
    begin(job) {
      jobs += 1
      messages += messagesOf(job)
      return messages >= fullLoad ? min : Math.min(max, Math.max(min, 2 * jobs))
    },
    end(job) {
      jobs -= 1
      messages -= messagesOf(job)
    },
  }
}

/** A job of an outbox row has no `messages` in its data and counts as one; jobs of other names count as none. */
function messagesOf(job: Job): number {
  return isMessageJob(job) ? (job.data.messages?.length ?? 1) : 0
}
