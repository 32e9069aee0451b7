/** A command has failed. The message is printed for the operator; the exit code is 1. */
export class CommandError extends Error {
  override name = 'CommandError'
}
