/** The process cannot start. The message says why and what to do, in sentences; nobody needs a stack to read it. */
export class StartError extends Error {
  override name = 'StartError'
}
