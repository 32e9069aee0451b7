import { ProtocolError } from '../src/protocol/errors.js'
import { CommandError } from './command-error.js'

/** Runs a step and turns its failure into a CommandError with a sentence. */
export async function explainFailure<Result>(failure: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    throw new CommandError(`${failure}: ${error.message.replace(/\.$/, '')}.`, { cause: error })
  }
}
