import { setMaxListeners } from 'node:events'
import type { Job } from 'bullmq'
import type { Logger } from 'pino'
import { AlreadyDone, outboxIdOf, type TakenWork, takeWork, type Work } from '../src/jobs/outbox/outbox.js'
import { giveUp } from '../src/jobs/waiting/waiting-messages.js'
import type { Pod } from '../src/pod/pod.js'
import { withDeadline } from './deadline.js'
import { FailedJob } from './failed-job.js'
import { type Outcome, outcomeOfError } from './job-outcome.js'
import { despiteOutages } from './retry-after-outage.js'
import { isSuspect, type SuspectLine } from './suspects.js'

/** `never`: which data a job carries is known to its definition alone. */
export type Handler = (pod: Pod, work: Work<never>, deadline: AbortSignal) => Promise<void>

/** What a queue's worker can do, by the name of the job. */
export type HandlerTable = Readonly<Record<string, Handler>>

export interface RunnerOptions {
  readonly handlers: HandlerTable
  /** Milliseconds a handler has. */
  readonly deadline: number
  /** Ends what is in hand, as an ordinary failed attempt. */
  readonly stopping: AbortSignal
  readonly suspects: SuspectLine
}

/** The runner of every queue but the inbound ones, whose jobs are merged. */
export function jobRunner(pod: Pod, options: RunnerOptions): (job: Job) => Promise<void> {
  setMaxListeners(0, options.stopping) // every job in hand listens
  return async (job) => {
    if (isHollow(job)) return sayLost(pod, job)
    const run = () => runJob({ ...pod, log: logOf(pod, job) }, options, job)
    try {
      await (isSuspect(job) ? options.suspects(job, run) : run())
    } catch (error) {
      throw await endOfFailure(pod, job, error)
    }
  }
}

/** A Redis that evicts may have thrown away all but the number of a job. Nobody could replay it; what has a row comes again. */
function isHollow({ name }: Job): boolean {
  return !name
}

function sayLost({ log }: Pick<Pod, 'log'>, { queueName: queue, id: jobId }: Job): void {
  log.warn({ queue, jobId }, 'the queue has thrown away what this job was')
}

function logOf({ log }: Pick<Pod, 'log'>, job: Job): Logger {
  return log.child({ queue: job.queueName, job: job.name, jobId: job.id, attempt: job.attemptsMade + 1 })
}

/** Runs one job to an end that is not a failure, or throws. */
async function runJob(pod: Pod, { handlers, deadline, stopping }: RunnerOptions, job: Job): Promise<void> {
  const handle = Object.hasOwn(handlers, job.name) ? handlers[job.name] : undefined
  if (handle === undefined) throw new FailedJob('unknown_name', 'dead')

  return despiteOutages(pod, stopping, async () => {
    let work: TakenWork | undefined
    try {
      work = await takeWork(pod.db, job.data)
      if (work === undefined) throw new AlreadyDone('The outbox row is gone.')
      const taken = work
      await withDeadline(deadline, stopping, (signal) => handle(pod, taken as Work as Work<never>, signal))
      await work.finishIfOpen()
    } catch (error) {
      if (await endsHere(pod, work, outcomeOfError(error))) return
      throw error
    }
  })
}

/** Outcomes that complete the job. */
async function endsHere(pod: Pod, work: TakenWork | undefined, outcome: Outcome): Promise<boolean> {
  switch (outcome.kind) {
    case 'done':
      pod.log.debug('somebody else has done it')
      return true
    case 'drop':
      pod.log.warn({ err: outcome.error, fault: outcome.fault }, 'dropped')
      await work?.finishIfOpen()
      return true
    case 'retry':
    case 'dead':
    case 'ours':
      return false
  }
}

/** Turns a failure into what BullMQ understands; the outbox row of a job without further tries is marked first. */
export async function endOfFailure(pod: Pod, job: Job, failure: unknown): Promise<FailedJob> {
  const log = logOf(pod, job)
  const outcome = outcomeOfError(failure)
  const fault = 'fault' in outcome ? outcome.fault : 'internal'
  const error = 'error' in outcome ? outcome.error : undefined
  const isDead = outcome.kind === 'dead' || !hasFurtherTries(job)
  if (isDead || fault === 'internal') log.error({ err: error, fault, dead: isDead }, 'failed')
  else
    log.info({ fault, reason: error instanceof Error ? error.message : undefined }, 'failed, and will be tried again')

  const outboxId = outboxIdOf(job.data)
  if (isDead && outboxId !== undefined) {
    // Without the mark the sweeper brings it back, which is no harm.
    await giveUp(pod, outboxId).catch((err) => log.warn({ err }, 'could not mark the outbox row'))
  }
  return error instanceof FailedJob ? error : new FailedJob(fault, isDead ? 'dead' : 'retry', error)
}

/** Whether a failure now would not be the last one. */
export function hasFurtherTries(job: Job): boolean {
  return job.attemptsMade + 1 < (job.opts.attempts ?? 1)
}
