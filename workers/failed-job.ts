/**
 * What the queue is told about a failure: the fault as reason, and the way to it. Messages of errors stay in the log of this
 * process; they may quote what was decrypted or stored, and a dead letter is kept for a month.
 */
export class FailedJob extends Error {
  readonly fault: string

  constructor(fault: string, fate: 'retry' | 'dead', cause?: unknown) {
    super(fault, { cause })
    this.fault = fault
    // BullMQ knows by this name that there is nothing left to try.
    this.name = fate === 'dead' ? 'UnrecoverableError' : 'FailedJob'
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
