import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))

export interface TestProcess {
  readonly pid: number
  /** Resolves with the exit code or signal when the process has ended. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Resolves with the first message that has this field. */
  messageWith(field: string): Promise<Record<string, unknown>>
  /** Handles each message from now on. */
  onMessage(handle: (message: Record<string, unknown>) => void): void
  signal(signal: NodeJS.Signals): void
  /** Sends SIGKILL, and resolves when the process has ended. */
  kill(): Promise<void>
}

/** Starts a TypeScript file of this project as a child process. */
export function startProcess(file: string, instructions: object): TestProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', file, JSON.stringify(instructions)], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const messages: Record<string, unknown>[] = []
  child.on('message', (message: Record<string, unknown>) => messages.push(message))
  const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  const killOnExit = () => void child.kill('SIGKILL')
  process.once('exit', killOnExit)
  void ended.then(() => process.off('exit', killOnExit))

  return {
    pid: child.pid ?? Number.NaN,
    ended,
    messageWith: (field) => waitForField(child, messages, field),
    onMessage: (handle) => void child.on('message', handle),
    signal: (signal) => void child.kill(signal),
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

async function waitForField(
  child: ChildProcess,
  messages: readonly Record<string, unknown>[],
  field: string,
): Promise<Record<string, unknown>> {
  for (;;) {
    const found = messages.find((message) => field in message)
    if (found) return found
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`The process ended without a message with ${field}.`)
    await Promise.race([once(child, 'message'), once(child, 'exit')])
  }
}
