import type { QueueClient } from './queue-client.js'
import type { QueueName } from './queue-names.js'

export interface QueueControl {
  /** Workers start no further job of the queue; running ones finish. */
  pause(queue: QueueName): Promise<void>
  resume(queue: QueueName): Promise<void>
  isPaused(queue: QueueName): Promise<boolean>
  /** Makes delayed jobs due, the earliest first; returns how many. */
  promote(queue: QueueName, limit: number): Promise<number>
}

export function queueControl(client: QueueClient): QueueControl {
  return {
    pause: (name) => client.request(name, (queue) => queue.pause()),
    resume: (name) => client.request(name, (queue) => queue.resume()),
    isPaused: (name) => client.request(name, (queue) => queue.isPaused()),

    async promote(name, limit) {
      const jobs = await client.request(name, (queue) => queue.getJobs(['delayed'], 0, limit - 1, true))
      const promoted = await Promise.allSettled(jobs.map((job) => job.promote())) // one may have begun meanwhile
      return promoted.filter(({ status }) => status === 'fulfilled').length
    },
  }
}
