import type { Job } from 'bullmq'
import type { QueueClient } from './queue-client.js'
import type { QueueName } from './queue-names.js'

/** Jobs that are read at once: each may have a hundred kilobytes. */
const JOB_BATCH_SIZE = 100

interface PromotedJobs {
  readonly limit: number
  /** Selects the jobs of a page. */
  readonly choose?: (jobs: readonly Job[]) => Promise<readonly Job[]>
  /** Called for each page with the number of its jobs that are due now, also if a later page cannot be read. */
  readonly onPromoted: (jobs: number) => void
}

export interface QueueControl {
  /** Workers start no further job of the queue; running ones finish. */
  pause(queue: QueueName): Promise<void>
  resume(queue: QueueName): Promise<void>
  isPaused(queue: QueueName): Promise<boolean>
  /** Makes delayed jobs due, the earliest first. */
  promote(queue: QueueName, promotion: PromotedJobs): Promise<void>
  /** Deletes a job that is not running. Ignores a job that has ended. */
  remove(queue: QueueName, jobId: string): Promise<void>
  /** Deletes all jobs that wait for their turn or their time. */
  discard(queue: QueueName): Promise<void>
}

export function createQueueControl(client: QueueClient): QueueControl {
  return {
    pause: (name) => client.request(name, (queue) => queue.pause()),
    resume: (name) => client.request(name, (queue) => queue.resume()),
    isPaused: (name) => client.request(name, (queue) => queue.isPaused()),

    async remove(name, jobId) {
      await client.request(name, (queue) => queue.remove(jobId))
    },

    discard: (name) => client.request(name, (queue) => queue.drain(true)),

    async promote(name, { limit, choose = async (jobs) => jobs, onPromoted }) {
      let promotedJobs = 0
      let skippedJobs = 0
      while (promotedJobs < limit) {
        const page = await client.request(name, (queue) =>
          queue.getJobs(['delayed'], skippedJobs, skippedJobs + JOB_BATCH_SIZE - 1, true),
        )
        const chosenJobs = (await choose(page)).slice(0, limit - promotedJobs)
        const ends = await Promise.allSettled(chosenJobs.map((job) => job.promote())) // one may have begun in the meantime
        const promotedOfPage = ends.filter(({ status }) => status === 'fulfilled').length
        onPromoted(promotedOfPage)
        promotedJobs += promotedOfPage
        skippedJobs += page.length - chosenJobs.length
        // Jobs that cannot be promoted stay in the list: the same page would be read for ever.
        const isStuck = chosenJobs.length > 0 && promotedOfPage === 0
        if (page.length < JOB_BATCH_SIZE || isStuck) break
      }
    },
  }
}
