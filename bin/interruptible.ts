import { CommandError } from './command-error.js'

/** Runs work that Ctrl-C or SIGTERM ends in order. `consequence` says in sentences what state an interruption leaves. */
export async function runInterruptible<Result>(
  consequence: string | (() => string),
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const interruption = new AbortController()
  const interrupt = () => interruption.abort()
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  try {
    return await work(interruption.signal)
  } catch (error) {
    if (interruption.signal.aborted) {
      throw new CommandError(`Interrupted. ${typeof consequence === 'string' ? consequence : consequence()}`)
    }
    throw error
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  }
}

/** Runs work until Ctrl-C or SIGTERM, which end it as intended. */
export async function runUntilInterrupted(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const interruption = new AbortController()
  const interrupt = () => interruption.abort()
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  try {
    await work(interruption.signal)
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  }
}
