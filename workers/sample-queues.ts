import { QUEUES } from '../src/jobs/queues/queue-names.js'
import { addQueueSamples } from '../src/persistence/operations/figure-history.js'
import type { Pod } from '../src/pod/pod.js'
import { runPeriodically } from './run-periodically.js'

const EVERY_MS = 60_000

/** Notes every minute how many jobs wait, for the charts of the console. Nothing is written while nothing waits. */
export function startQueueSampling(pod: Pick<Pod, 'db' | 'jobs' | 'log'>): { stop(): Promise<void> } {
  return runPeriodically(EVERY_MS, () => sampleQueues(pod))
}

export async function sampleQueues({ db, jobs, log }: Pick<Pod, 'db' | 'jobs' | 'log'>): Promise<void> {
  try {
    const counts = await Promise.all(QUEUES.map(async (queue) => ({ queue, ...(await jobs.counts(queue)) })))
    const samples = counts.map(({ queue, waiting }) => ({ queue, waiting }))
    await addQueueSamples(
      db,
      samples.filter(({ waiting }) => waiting > 0),
    )
  } catch (err) {
    log.debug({ err }, 'queues not sampled') // an outage has its own log lines
  }
}
