import type { Pod } from '../pod.js'
import { discoverPersonJob, fetchEntityJob, type WantedEntity } from './definitions.js'

interface AskOptions {
  /** Milliseconds until anybody is asked: what is missing may be about to come by itself. */
  readonly delay?: number
}

/** Has a worker find out who has this address: one job for all who want to know. */
export async function askForPerson(pod: Pick<Pod, 'jobs'>, address: string, options: AskOptions = {}): Promise<void> {
  await pod.jobs.enqueue(discoverPersonJob, { address }, { ...options, unique: `person:${address}` })
}

/** Has a worker fetch this: one job for all who want it from there. Whoever names the wrong pod delays nobody who names another. */
export async function askForEntity(
  pod: Pick<Pod, 'jobs'>,
  wanted: WantedEntity,
  options: AskOptions = {},
): Promise<void> {
  await pod.jobs.enqueue(fetchEntityJob, wanted, { ...options, unique: `${wanted.type}:${wanted.guid} ${wanted.from}` })
}
