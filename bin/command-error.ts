/** A command could not do what it was asked for. The message is the sentence people read; the exit code is 1. */
export class CommandError extends Error {
  override name = 'CommandError'
}
