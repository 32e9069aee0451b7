import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'
import { once } from 'node:events'

const ENDING = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

/** Starts a file of this project as a process. The path is relative to `bench`, without an extension. */
export function forkFile(path: string, options: ForkOptions = {}): ChildProcess {
  return fork(new URL(`../${path}${ENDING}`, import.meta.url), options)
}

/** What it says next. */
export async function said<Message>(child: ChildProcess): Promise<Message> {
  const [message]: Message[] = await once(child, 'message')
  if (message === undefined) throw new Error('a process said nothing')
  return message
}

/** Resolves once it has finished what it had in hand. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
