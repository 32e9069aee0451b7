/** The process cannot start. The message gives reason and remedy in sentences; it is printed without a stack. */
export class StartError extends Error {
  override name = 'StartError'
}

/** Ends a process that could not start. The message goes to the parent process if there is one, otherwise to stderr. */
export function endUnstarted({ message }: StartError): void {
  if (process.send !== undefined) {
    process.send({ refused: message }, () => process.exit(1))
  } else {
    console.error(message)
    process.exit(1)
  }
}
