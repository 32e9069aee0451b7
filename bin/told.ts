import { ProtocolError } from '../src/protocol/errors.js'
import { CommandError } from './command-error.js'

/** What did not work on the way to another pod, as a sentence. */
export async function told<Result>(what: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    throw new CommandError(`${what}: ${error.message.replace(/\.$/, '')}.`, { cause: error })
  }
}
