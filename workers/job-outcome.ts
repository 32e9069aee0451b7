import { Refusal } from '../src/domain/refusals.js'
import { AlreadyDone } from '../src/jobs/outbox/outbox.js'
import { isDatabaseUnavailable } from '../src/persistence/database/errors.js'
import { outcomeOf, ProtocolError } from '../src/protocol/errors.js'
import { FailedJob } from './failed-job.js'

/** Everything that can become of a run. */
export type Outcome =
  /** The effect is there, by us or by somebody else. */
  | { readonly kind: 'done' }
  /** It is wrong, or was turned down, and stays so: a line in the log and no more. */
  | { readonly kind: 'drop'; readonly fault: string; readonly error: Error }
  /** The next try may go better; after the last one it is a dead letter. */
  | { readonly kind: 'retry'; readonly fault: string; readonly error: unknown }
  /** No further try can help, but the operator may. */
  | { readonly kind: 'dead'; readonly fault: string; readonly error: Error }
  /** Our own database is in trouble: nothing was tried. */
  | { readonly kind: 'ours'; readonly error: unknown }

/** Decides by class and field what an error means, never by its text. */
export function outcomeOfError(error: unknown): Outcome {
  if (error instanceof AlreadyDone) return { kind: 'done' }
  if (error instanceof Refusal) return { kind: 'drop', fault: error.reason, error }
  if (error instanceof ProtocolError) {
    // Only messages wait for things, and they say so without an error; here the back-off does the waiting.
    const kind = outcomeOf[error.fault] === 'drop' ? 'drop' : 'retry'
    return { kind, fault: error.fault, error }
  }
  if (error instanceof FailedJob) return { kind: 'dead', fault: error.fault, error }
  if (error instanceof OutOfTime) return { kind: 'retry', fault: error.fault, error }
  if (isDatabaseUnavailable(error)) return { kind: 'ours', error }
  return { kind: 'retry', fault: 'internal', error }
}

/** The handler had its time, or the process is about to end. */
export class OutOfTime extends Error {
  override name = 'OutOfTime'
  readonly fault: 'timeout' | 'stopped'

  constructor(fault: OutOfTime['fault'], message: string) {
    super(message)
    this.fault = fault
  }
}
