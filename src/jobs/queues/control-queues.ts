import type { QueueClient } from './queue-client.js'
import type { QueueName } from './queue-names.js'

export interface QueueControl {
  /** Workers start no further job of the queue; running ones finish. */
  pause(queue: QueueName): Promise<void>
  resume(queue: QueueName): Promise<void>
  isPaused(queue: QueueName): Promise<boolean>
  /** Makes delayed jobs due, the earliest first; returns how many. With a name, only jobs of this name. */
  promote(queue: QueueName, limit: number, name?: string): Promise<number>
  /** Deletes a job that is not running; one that has ended already is no error. */
  remove(queue: QueueName, jobId: string): Promise<void>
  /** Deletes all jobs that wait for their turn or their time. */
  discard(queue: QueueName): Promise<void>
}

export function queueControl(client: QueueClient): QueueControl {
  return {
    pause: (name) => client.request(name, (queue) => queue.pause()),
    resume: (name) => client.request(name, (queue) => queue.resume()),
    isPaused: (name) => client.request(name, (queue) => queue.isPaused()),

    async remove(name, jobId) {
      await client.request(name, (queue) => queue.remove(jobId))
    },

    discard: (name) => client.request(name, (queue) => queue.drain(true)),

    async promote(name, limit, jobName) {
      const jobs = await client.request(name, (queue) => queue.getJobs(['delayed'], 0, limit - 1, true))
      const chosen = jobName === undefined ? jobs : jobs.filter((job) => job.name === jobName)
      const promoted = await Promise.allSettled(chosen.map((job) => job.promote())) // one may have begun meanwhile
      return promoted.filter(({ status }) => status === 'fulfilled').length
    },
  }
}
