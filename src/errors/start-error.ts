/** The process cannot start. The message says why and what to do, in sentences; nobody needs a stack to read it. */
export class StartError extends Error {
  override name = 'StartError'
}

/** Ends a process that could not start: whoever keeps it hears the sentence, or else the people in front of it. */
export function endUnstarted({ message }: StartError): void {
  if (process.send !== undefined) {
    process.send({ refused: message }, () => process.exit(1))
  } else {
    console.error(message)
    process.exit(1)
  }
}
