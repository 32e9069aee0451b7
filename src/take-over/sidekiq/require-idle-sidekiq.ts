import { messageOf } from '../../errors/thrown.js'
import { withoutRedisPassword } from '../../jobs/queues/redis-address.js'
import { countSidekiqJobs, type SidekiqJobs } from '../../jobs/queues/sidekiq-jobs.js'
import { TakeOverError } from '../take-over-error.js'

/** Jobs whose effect is not in the database yet, and that only diaspora* can do. */
const NEEDED = ['ReceiveLocal', 'DeferredRetraction', 'DeleteAccount']

export async function findSidekiqJobs(url: string): Promise<SidekiqJobs> {
  return countSidekiqJobs(url).catch((cause: unknown) => {
    throw new TakeOverError(
      `The Redis of Sidekiq at ${withoutRedisPassword(url)} cannot be read (${messageOf(cause)}).`,
      { cause },
    )
  })
}

/** Refuses the switch while Sidekiq runs, or while a job waits whose effect would be lost. */
export async function requireIdleSidekiq(
  url: string,
  { mayLoseJobs }: { readonly mayLoseJobs: boolean },
): Promise<SidekiqJobs> {
  const jobs = await findSidekiqJobs(url)
  if (jobs.processes > 0) throw new TakeOverError('A process of Sidekiq runs: stop it when its queues are empty.')
  const neededJobs = NEEDED.filter((name) => (jobs.waiting[name] ?? 0) > 0)
  if (neededJobs.length === 0 || mayLoseJobs) return jobs
  const jobCounts = neededJobs.map((name) => `${jobs.waiting[name]} ${name}`).join(', ')
  throw new TakeOverError(
    `Jobs of Sidekiq wait whose effect would be lost (${jobCounts}): start Sidekiq until they are done, or drop them with --lose-jobs.`,
  )
}
