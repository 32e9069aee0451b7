import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'
import { once } from 'node:events'

const ENDING = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

/** Starts a file of this project as a child process. The path is relative to `bench` and has no extension. */
export function forkFile(path: string, options: ForkOptions = {}): ChildProcess {
  return fork(new URL(`../${path}${ENDING}`, import.meta.url), options)
}

/** Waits for the next message of a child process. */
export async function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  const [message]: Message[] = await once(child, 'message')
  if (message === undefined) throw new Error('The child process sent an empty message.')
  return message
}

/** Sends SIGTERM and waits for the exit of the process, which first completes its work in progress. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
