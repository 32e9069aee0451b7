import { setMaxListeners } from 'node:events'
import type { Job } from 'bullmq'
import type { Logger } from 'pino'
import { saveOrigin } from '../src/jobs/bullmq/job-summaries.js'
import { originOfMessage } from '../src/jobs/inbound/accepted-messages.js'
import { NewerVersionNeeded, requireKnownVersion } from '../src/jobs/job-version.js'
import { AlreadyDone, type JobContext, type LoadedJob, loadJob, readOutboxId } from '../src/jobs/outbox/load-job.js'
import type { QueueName } from '../src/jobs/queues/queue-names.js'
import { giveUpOutboxRow } from '../src/jobs/waiting/resume-messages.js'
import { failTaskOfJob } from '../src/persistence/operations/background-tasks.js'
import { inSpan } from '../src/services/in-span.js'
import { type Services, withRequestContext } from '../src/services/services.js'
import type { SpanOptions } from '../src/services/tracer.js'
import { withDeadline } from './deadline.js'
import { FailedJob } from './failed-job.js'
import { type CompletedOutcome, isCompleted, outcomeOfError } from './job-outcome.js'
import { putBack } from './put-back.js'
import { retryAfterOutages } from './retry-after-outage.js'
import { isSuspect, type RunSuspect } from './suspects.js'

/** `never`: the data type of a job is known to its definition alone. */
export type Handler = (services: Services, work: JobContext<never>, deadline: AbortSignal) => Promise<void>

/** The handlers of a queue, by the name of the job. */
export type HandlerTable = Readonly<Record<string, Handler>>

export interface RunnerOptions {
  readonly handlers: HandlerTable
  /** Milliseconds a handler has. */
  readonly timeoutMs: number
  /** Aborts running jobs, as an ordinary failed attempt. */
  readonly abortSignal: AbortSignal
  readonly runSuspect: RunSuspect
  /** Milliseconds until a job that needs a newer version is taken again. */
  putBackDelay(timesPutBack: number): number
}

/** The runner of all queues except the inbound ones, whose jobs are merged. */
export function createJobRunner(services: Services, options: RunnerOptions): (job: Job) => Promise<void> {
  setMaxListeners(0, options.abortSignal) // every running job listens
  return async (job) => {
    if (isEvicted(job)) return logEvicted(services, job)
    const run = () => runJob({ ...services, log: logOf(services, job) }, options, job)
    await runAndRecordFailure(services, options, job, () => (isSuspect(job) ? options.runSuspect(job, run) : run()))
  }
}

/** Runs a job. Records its failure or puts it back, and throws the error for BullMQ. */
export async function runAndRecordFailure(
  services: Services,
  { putBackDelay }: Pick<RunnerOptions, 'putBackDelay'>,
  job: Job,
  run: () => Promise<void>,
): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (error instanceof NewerVersionNeeded) return endForNewerVersion(job, logOf(services, job), putBackDelay)
    const failure = failureOf(job, error)
    await recordJobFailure(services, job, failure)
    throw toFailedJob(failure)
  }
}

/** Scheduled jobs are dropped instead: the schedule adds the next one, and a schedule of a withdrawn version would add more and more. */
async function endForNewerVersion(job: Job, log: Logger, delay: RunnerOptions['putBackDelay']): Promise<void> {
  if (job.repeatJobKey === undefined) return putBack(job, { log, delay })
  log.info('scheduled job needs a newer version of the program, dropped')
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
async function runJob(
  services: Services,
  { handlers, timeoutMs, abortSignal }: RunnerOptions,
  job: Job,
): Promise<void> {
  const handle = Object.hasOwn(handlers, job.name) ? handlers[job.name] : undefined
  if (handle === undefined) throw new NewerVersionNeeded(`This program has no job ${job.name}.`)

  return retryAfterOutages(services, abortSignal, async () => {
    let work: LoadedJob | undefined
    try {
      work = await loadJob(services.db, job.data)
      if (work === undefined) throw new AlreadyDone('The outbox row is gone.')
      requireKnownVersion(services.jobs.versionOf({ queue: job.queueName as QueueName, name: job.name }), work.data)
      const loadedJob = work
      await withDeadline(timeoutMs, abortSignal, (signal) =>
        inSpan(services.tracer, `job ${job.name}`, spanOf(job, loadedJob), () =>
          handle(servicesWithTrace(services, loadedJob), loadedJob as JobContext as JobContext<never>, signal),
        ),
      )
      await work.finishIfOpen()
    } catch (error) {
      const outcome = outcomeOfError(error)
      if (!isCompleted(outcome)) throw error
      logCompletion(services, outcome)
      if (outcome.kind === 'drop') await work?.finishIfOpen()
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

function logCompletion({ log }: Pick<Services, 'log'>, outcome: CompletedOutcome): void {
  if (outcome.kind === 'done') log.debug('job already done')
  else if (outcome.kind === 'postponed') log.debug('job postponed')
  else log.warn({ err: outcome.error, fault: outcome.fault }, 'job dropped')
}

/** A failed attempt of a job. */
interface JobFailure {
  readonly fault: string
  readonly error: unknown
  /** There is no further attempt. */
  readonly isDead: boolean
}

function failureOf(job: Job, thrown: unknown): JobFailure {
  const outcome = outcomeOfError(thrown)
  return {
    fault: 'fault' in outcome ? outcome.fault : 'internal',
    error: 'error' in outcome ? outcome.error : undefined,
    isDead: outcome.kind === 'dead' || !hasFurtherTries(job),
  }
}

/** The error for BullMQ. */
function toFailedJob({ fault, error, isDead }: JobFailure): FailedJob {
  return error instanceof FailedJob ? error : new FailedJob(fault, isDead ? 'dead' : 'retry', error)
}

/** Logs a failure. Without a further attempt it gives up the outbox row and the background task of the job. */
async function recordJobFailure(services: Services, job: Job, { fault, error, isDead }: JobFailure): Promise<void> {
  const log = logOf(services, job)
  if (isDead || fault === 'internal') log.error({ err: error, fault, dead: isDead }, 'job failed')
  else log.info({ fault, reason: error instanceof Error ? error.message : undefined }, 'job failed, will be retried')

  const origin = isDead ? originOfMessage(job) : undefined
  if (origin !== undefined) {
    await saveOrigin(job, origin).catch((err) => log.warn({ err }, 'origin of a failed job not stored'))
  }
  const outboxId = readOutboxId(job.data)
  if (isDead && outboxId !== undefined) {
    // Without the mark the sweeper adds the job again, which does no harm.
    const failed = { id: job.id, attempts: job.attemptsMade + 1 }
    await giveUpOutboxRow(services, outboxId, { fault, job: failed }).catch((err) =>
      log.warn({ err }, 'outbox row not marked as failed'),
    )
    await failTaskOfJob(services.db, outboxId, fault).catch((err) =>
      log.warn({ err }, 'background task not marked as failed'),
    )
  }
}

/** Whether the job has another attempt after a failure now. */
export function hasFurtherTries(job: Job): boolean {
  return job.attemptsMade + 1 < (job.opts.attempts ?? 1)
}
