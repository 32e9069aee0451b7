/**
 * A failure as the queue stores it: the fault as reason, and a stack without messages. Messages of errors stay in the log of this
 * process, because they may quote decrypted content, and a dead letter is kept for a month.
 */
export class FailedJob extends Error {
  readonly fault: string
  readonly handling: 'retry' | 'dead'

  constructor(fault: string, handling: FailedJob['handling'], cause?: unknown) {
    super(fault, { cause })
    this.fault = fault
    this.handling = handling
    // BullMQ makes no further attempt after an error of this name.
    this.name = handling === 'dead' ? 'UnrecoverableError' : 'FailedJob'
    if (cause instanceof Error) this.stack = `${fault}: ${kindOf(cause)}\n${framesOf(cause)}`
  }
}

function kindOf(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : ''
  return `${error.name}${code}`
}

function framesOf({ stack = '' }: Error): string {
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n')
}
