import type { ChildProcess } from 'node:child_process'
import { receivePublicJob } from '../../src/jobs/definitions.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import type { InboundSetup } from './inbound.js'
import { firstMessages } from './inbound-corpus.js'
import { isCorrect, resetRows, waitUntilWritten } from './inbound-pod.js'

const BACKLOG_MESSAGES = 6_000
const JOB_BATCH_SIZE = 500

/** The measurement of one backlog. */
export interface Backlog {
  readonly perSecond: number
  /** Messages per second of the preceding burst, whose jobs have many messages each. */
  readonly limit: number
  /** Microseconds per message, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly ok: boolean
}

/**
 * Jobs with one message each, as a quiet pod creates them, enqueued while the worker is stopped. Measured from the first row to the
 * last. The worker is the one of the burst, because a new worker is slower at first.
 */
export async function measureBacklog(
  { stores, corpus: whole }: InboundSetup,
  services: OpenServices,
  worker: ChildProcess,
  limit: number,
): Promise<Backlog> {
  const corpus = firstMessages(whole, BACKLOG_MESSAGES)
  await resetRows(services.db, corpus)
  const acceptedAt = new Date().toISOString()
  const jobs = corpus.messages.map(({ envelope }) => ({ acceptedAt, messages: [envelope] }))
  worker.kill('SIGSTOP')
  for (let added = 0; added < jobs.length; added += JOB_BATCH_SIZE) {
    await services.jobs.addAll(receivePublicJob, jobs.slice(added, added + JOB_BATCH_SIZE))
  }
  const pids = { worker: worker.pid ?? Number.NaN, ...stores.pids }
  const before = processorTimesOf(pids)
  worker.kill('SIGCONT')
  const writeTimes = [...(await waitUntilWritten(services.db, corpus)).values()]
  const after = processorTimesOf(pids)
  return {
    perSecond: (jobs.length * 1_000) / (Math.max(...writeTimes) - Math.min(...writeTimes)),
    limit,
    cpu: timePerMessage(jobs.length, before, after),
    ok: await isCorrect(services, corpus),
  }
}

export function resultOfBacklogs({ queue, bits }: InboundSetup, backlogs: readonly Backlog[]): Result {
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
