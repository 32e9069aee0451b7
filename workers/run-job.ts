import { setMaxListeners } from 'node:events'
import type { Job } from 'bullmq'
import type { Logger } from 'pino'
import { inSpan } from '../src/jobs/operations/in-span.js'
import { AlreadyDone, type JobContext, type LoadedJob, loadJob, readOutboxId } from '../src/jobs/outbox/load-job.js'
import { giveUpOutboxRow } from '../src/jobs/waiting/resume-messages.js'
import { failTaskOfJob } from '../src/persistence/operations/background-tasks.js'
import { type Services, withRequestContext } from '../src/services/services.js'
import type { SpanOptions } from '../src/services/tracer.js'
import { withDeadline } from './deadline.js'
import { FailedJob } from './failed-job.js'
import { type JobOutcome, outcomeOfError } from './job-outcome.js'
import { retryAfterOutages } from './retry-after-outage.js'
import { isSuspect, type SuspectQueue } from './suspects.js'

/** `never`: the data type of a job is known to its definition alone. */
export type Handler = (services: Services, work: JobContext<never>, deadline: AbortSignal) => Promise<void>

/** The handlers of a queue, by the name of the job. */
export type HandlerTable = Readonly<Record<string, Handler>>

export interface RunnerOptions {
  readonly handlers: HandlerTable
  /** Milliseconds a handler has. */
  readonly timeoutMs: number
  /** Aborts running jobs, as an ordinary failed attempt. */
  readonly stopping: AbortSignal
  readonly suspects: SuspectQueue
}

/** The runner of all queues except the inbound ones, whose jobs are merged. */
export function createJobRunner(services: Services, options: RunnerOptions): (job: Job) => Promise<void> {
  setMaxListeners(0, options.stopping) // every running job listens
  return async (job) => {
    if (isEvicted(job)) return logEvicted(services, job)
    const run = () => runJob({ ...services, log: logOf(services, job) }, options, job)
    try {
      await (isSuspect(job) ? options.suspects(job, run) : run())
    } catch (error) {
      throw await endOfFailure(services, job, error)
    }
  }
}

/** A Redis that evicts keys may have lost all but the id of a job. It cannot be replayed; a job of an outbox row is added again. */
function isEvicted({ name }: Job): boolean {
  return !name
}

function logEvicted({ log }: Pick<Services, 'log'>, { queueName: queue, id: jobId }: Job): void {
  log.warn({ queue, jobId }, 'job data evicted by the queue')
}

function logOf({ log }: Pick<Services, 'log'>, job: Job): Logger {
  return log.child({ queue: job.queueName, job: job.name, jobId: job.id, attempt: job.attemptsMade + 1 })
}

/** Runs one job; throws when it has failed. */
async function runJob(services: Services, { handlers, timeoutMs, stopping }: RunnerOptions, job: Job): Promise<void> {
  const handle = Object.hasOwn(handlers, job.name) ? handlers[job.name] : undefined
  // A job of a newer version, whose workers start during an upgrade: they will run one of the next attempts.
  if (handle === undefined) throw new FailedJob('unknown_name', 'retry')

  return retryAfterOutages(services, stopping, async () => {
    let work: LoadedJob | undefined
    try {
      work = await loadJob(services.db, job.data)
      if (work === undefined) throw new AlreadyDone('The outbox row is gone.')
      const loadedJob = work
      await withDeadline(timeoutMs, stopping, (signal) =>
        inSpan(services.tracer, `job ${job.name}`, spanOf(job, loadedJob), () =>
          handle(servicesWithTrace(services, loadedJob), loadedJob as JobContext as JobContext<never>, signal),
        ),
      )
      await work.finishIfOpen()
    } catch (error) {
      if (await completesJob(services, work, outcomeOfError(error))) return
      throw error
    }
  })
}

function spanOf({ queueName: queue, name }: Job, { trace }: Pick<JobContext, 'trace'>): SpanOptions {
  return { kind: 'consumer', traces: [trace], attributes: { queue, job: name } }
}

/** The services with the trace of a job, for its rows and its log lines. */
function servicesWithTrace(services: Services, { trace }: Pick<JobContext, 'trace'>): Services {
  return trace === undefined
    ? services
    : { ...withRequestContext(services, { trace }), log: services.log.child({ trace }) }
}

/** Whether the outcome completes the job. */
async function completesJob(services: Services, work: LoadedJob | undefined, outcome: JobOutcome): Promise<boolean> {
  switch (outcome.kind) {
    case 'done':
      services.log.debug('job already done')
      return true
    case 'postponed':
      services.log.debug('job postponed')
      return true
    case 'drop':
      services.log.warn({ err: outcome.error, fault: outcome.fault }, 'job dropped')
      await work?.finishIfOpen()
      return true
    case 'retry':
    case 'dead':
    case 'unavailable':
      return false
  }
}

/** Turns a failure into an error for BullMQ; first marks the outbox row of a job without further attempts. */
export async function endOfFailure(services: Services, job: Job, failure: unknown): Promise<FailedJob> {
  const log = logOf(services, job)
  const outcome = outcomeOfError(failure)
  const fault = 'fault' in outcome ? outcome.fault : 'internal'
  const error = 'error' in outcome ? outcome.error : undefined
  const isDead = outcome.kind === 'dead' || !hasFurtherTries(job)
  if (isDead || fault === 'internal') log.error({ err: error, fault, dead: isDead }, 'job failed')
  else log.info({ fault, reason: error instanceof Error ? error.message : undefined }, 'job failed, will be retried')

  const outboxId = readOutboxId(job.data)
  if (isDead && outboxId !== undefined) {
    // Without the mark the sweeper adds the job again, which does no harm.
    const failed = { id: job.id, attempts: job.attemptsMade + 1 }
    await giveUpOutboxRow(services, outboxId, { fault, job: failed }).catch((err) =>
      log.warn({ err }, 'outbox row not marked as failed'),
    )
    await failTaskOfJob(services.db, outboxId, fault).catch((err) =>
      log.warn({ err }, 'operation not marked as failed'),
    )
  }
  return error instanceof FailedJob ? error : new FailedJob(fault, isDead ? 'dead' : 'retry', error)
}

/** Whether the job has another attempt after a failure now. */
export function hasFurtherTries(job: Job): boolean {
  return job.attemptsMade + 1 < (job.opts.attempts ?? 1)
}
