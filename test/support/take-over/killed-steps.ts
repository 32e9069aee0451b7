import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../../../dist/bin/pod.js', import.meta.url))
/** A working directory without a file `.env`. */
const FOLDER = fileURLToPath(new URL('.', import.meta.url))

type Environment = Readonly<Record<string, string>>

/** Runs a step of the compiled program to its end. Throws with its messages if it fails. */
export async function runStep(args: readonly string[], environment: Environment): Promise<string> {
  const child = launch(args, environment)
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)]
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`"pod take-over ${args.join(' ')}" has exited with code ${code}: ${await stderr}`)
  return stdout
}

/** Starts a step, and kills its process as soon as the condition is true. Throws if the step ends before. */
export async function killStep(
  args: readonly string[],
  environment: Environment,
  isReached: () => Promise<boolean>,
): Promise<void> {
  const child = launch(args, environment)
  child.stdout.resume()
  const messages = text(child.stderr)
  const ended = once(child, 'close')
  while (child.exitCode === null && !(await isReached())) await pause(2)
  child.kill('SIGKILL')
  await ended
  if (child.exitCode !== null) {
    throw new Error(`"pod take-over ${args.join(' ')}" has exited with code ${child.exitCode}: ${await messages}`)
  }
}

function launch(args: readonly string[], environment: Environment) {
  return spawn(process.execPath, [PROGRAM, 'take-over', ...args], {
    cwd: FOLDER,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
