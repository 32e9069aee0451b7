import { Refusal } from '../src/domain/refusals.js'
import { AlreadyDone, Postponed } from '../src/jobs/outbox/load-job.js'
import { isDatabaseUnavailable } from '../src/persistence/database/errors.js'
import { HANDLING_OF_FAULT, ProtocolError } from '../src/protocol/errors.js'
import { FailedJob } from './failed-job.js'

/** The outcome of one run of a job. */
export type JobOutcome =
  /** The effect is committed, by this run or by another worker. */
  | { readonly kind: 'done' }
  /** The outbox row stays; the sweeper adds the job again. */
  | { readonly kind: 'postponed' }
  /** Permanently invalid or refused: logged, not retried. */
  | { readonly kind: 'drop'; readonly fault: string; readonly error: Error }
  /** The next attempt may succeed; after the last one the job is a dead letter. */
  | { readonly kind: 'retry'; readonly fault: string; readonly error: unknown }
  /** No further attempt can succeed; the job is a dead letter for the operator. */
  | { readonly kind: 'dead'; readonly fault: string; readonly error: Error }
  /** The database of this pod is unavailable: the work was not attempted. */
  | { readonly kind: 'unavailable'; readonly error: unknown }

/** The outcomes after which a job is not attempted again and is no dead letter. */
export type CompletedOutcome = Extract<JobOutcome, { readonly kind: 'done' | 'postponed' | 'drop' }>

export function isCompleted(outcome: JobOutcome): outcome is CompletedOutcome {
  return outcome.kind === 'done' || outcome.kind === 'postponed' || outcome.kind === 'drop'
}

/** Classifies an error by its class and fields, never by its text. */
export function outcomeOfError(error: unknown): JobOutcome {
  if (error instanceof AlreadyDone) return { kind: 'done' }
  if (error instanceof Postponed) return { kind: 'postponed' }
  if (error instanceof Refusal) return { kind: 'drop', fault: error.reason, error }
  if (error instanceof ProtocolError) {
    // Only messages wait for entities, and without an error; other jobs wait by their back-off.
    const kind = HANDLING_OF_FAULT[error.fault] === 'drop' ? 'drop' : 'retry'
    return { kind, fault: error.fault, error }
  }
  if (error instanceof FailedJob) return { kind: error.handling, fault: error.fault, error }
  if (error instanceof OutOfTime) return { kind: 'retry', fault: error.fault, error }
  if (isDatabaseUnavailable(error)) return { kind: 'unavailable', error }
  return { kind: 'retry', fault: 'internal', error }
}

/** The handler exceeded its time, or the process stops. */
export class OutOfTime extends Error {
  override name = 'OutOfTime'
  readonly fault: 'timeout' | 'stopped'

  constructor(fault: OutOfTime['fault'], message: string) {
    super(message)
    this.fault = fault
  }
}
