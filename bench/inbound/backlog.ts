import type { ChildProcess } from 'node:child_process'
import { receivePublicJob } from '../../src/jobs/definitions.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import type { Setting } from './inbound.js'
import { partOf } from './inbound-corpus.js'
import { empty, isRight, untilWritten } from './inbound-pod.js'

/** Messages, by tens. */
const TENS = 600
const JOB_BATCH_SIZE = 500

/** How a backlog went. */
export interface Backlog {
  readonly perSecond: number
  /** What came through in jobs of many, just before. */
  readonly limit: number
  /** Microseconds for one message, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly ok: boolean
}

/**
 * Jobs of one message each, as a quiet pod makes them, that have gathered while the worker stood still: from the first row that
 * it writes to the last. Another worker would be slower at first, as a burst would be through it.
 */
export async function measureBacklog(
  { stores, corpus: whole }: Setting,
  services: OpenServices,
  worker: ChildProcess,
  limit: number,
): Promise<Backlog> {
  const corpus = partOf(whole, TENS)
  await empty(services.db, corpus)
  const acceptedAt = new Date().toISOString()
  const jobs = corpus.messages.map(({ envelope }) => ({ acceptedAt, messages: [envelope] }))
  worker.kill('SIGSTOP')
  for (let done = 0; done < jobs.length; done += JOB_BATCH_SIZE) {
    await services.jobs.addAll(receivePublicJob, jobs.slice(done, done + JOB_BATCH_SIZE))
  }
  const pids = { worker: worker.pid ?? Number.NaN, ...stores.pids }
  const before = processorTimesOf(pids)
  worker.kill('SIGCONT')
  const written = [...(await untilWritten(services.db, corpus)).values()]
  const after = processorTimesOf(pids)
  return {
    perSecond: (jobs.length * 1_000) / (Math.max(...written) - Math.min(...written)),
    limit,
    cpu: timePerMessage(jobs.length, before, after),
    ok: await isRight(services, corpus),
  }
}

export function resultOfBacklogs({ queue, bits }: Setting, backlogs: readonly Backlog[]): Result {
  const rates = backlogs.map(({ perSecond }) => perSecond)
  return {
    bench: 'inbound',
    case: `backlog, ${queue}, rsa${bits}`,
    value: median(rates),
    unit: 'msg/s',
    limit: median(backlogs.map(({ limit }) => limit)),
    ratio: median(backlogs.map(({ perSecond, limit }) => perSecond / limit)),
    floor: FLOORS.backlog,
    rounds: backlogs.length,
    spread: spreadOf(rates),
    cpu_us: medianCpu(backlogs),
    ok: backlogs.every(({ ok }) => ok),
  }
}
