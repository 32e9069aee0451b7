import type { AnyJob } from '../definitions.js'
import type { OptionsOf } from './job-options.js'
import type { QueueClient } from './queue-client.js'
import type { QueueName } from './queue-names.js'

export interface Schedule {
  readonly job: AnyJob
  /** Milliseconds between two runs. */
  readonly intervalMs: number
}

export interface JobScheduling {
  /** Creates or repairs the schedules of a queue; true when any had to be made. */
  keepSchedules(queue: QueueName, schedules: readonly Schedule[]): Promise<boolean>
  /** Removes the schedules of a queue that are not among these. */
  endOtherSchedules(queue: QueueName, kept: readonly Schedule[]): Promise<void>
}

/** Milliseconds by which the next run of a schedule may be early or late. */
const SCHEDULE_TOLERANCE_MS = 10_000

export function createJobScheduling(client: QueueClient, optionsOf: OptionsOf): JobScheduling {
  return {
    async keepSchedules(name, schedules) {
      return client.request(name, async (queue) => {
        const results = await Promise.all(
          schedules.map(async ({ job, intervalMs }) => {
            // One by one: a list of all schedules would also read each of them, and their names before.
            const schedule = await queue.getJobScheduler(job.name)
            const wait = (schedule?.next ?? 0) - Date.now()
            // A process whose clock is wrong may have made a schedule that begins tomorrow.
            if (
              schedule?.every === intervalMs &&
              wait > -SCHEDULE_TOLERANCE_MS &&
              wait < intervalMs + SCHEDULE_TOLERANCE_MS
            )
              return false
            await queue.upsertJobScheduler(
              job.name,
              { every: intervalMs },
              { name: job.name, data: {}, opts: optionsOf(job) },
            )
            return true
          }),
        )
        return results.includes(true)
      })
    },

    async endOtherSchedules(name, kept) {
      const names = new Set(kept.map(({ job }) => job.name))
      await client.request(name, async (queue) => {
        const jobSchedulers = await queue.getJobSchedulers()
        const others = jobSchedulers.filter(({ key }) => !names.has(key))
        await Promise.all(others.map(({ key }) => queue.removeJobScheduler(key)))
      })
    },
  }
}
