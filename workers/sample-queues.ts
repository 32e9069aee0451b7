import { QUEUES } from '../src/jobs/queues/queue-names.js'
import { addQueueSamples } from '../src/persistence/operations/counter-history.js'
import type { Services } from '../src/services/services.js'
import { runPeriodically } from './run-periodically.js'

const INTERVAL_MS = 60_000

/** Records every minute how many jobs wait, for the charts of the console. Nothing is written while nothing waits. */
export function startQueueSampling(services: Pick<Services, 'db' | 'jobs' | 'log'>): { stop(): Promise<void> } {
  return runPeriodically(INTERVAL_MS, () => sampleQueues(services))
}

export async function sampleQueues({ db, jobs, log }: Pick<Services, 'db' | 'jobs' | 'log'>): Promise<void> {
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
