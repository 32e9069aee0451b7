import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { copyPreparedData } from '../support/databases/prepared-data.js'
import { memoryFolder } from '../support/files/memory-folder.js'
import { type CommandOutcome, type CommandRunner, openCommandRunner } from '../support/processes/command-runner.js'

const PROGRAM = fileURLToPath(new URL('../../dist/bin/pod.js', import.meta.url))
const PROGRAM_MODULE = fileURLToPath(new URL('../../dist/bin/program.js', import.meta.url))
const NO_ENV_FILE_HERE = fileURLToPath(new URL('.', import.meta.url))
const SHORT_KEYS = fileURLToPath(new URL('../support/processes/short-keys.cjs', import.meta.url))
const MAX_COMMAND_MS = 60_000

/** Environment of the program; variables of this shell or test run are excluded. */
export type Settings = Readonly<Record<string, string>>

export type Outcome = CommandOutcome

/** A folder for the data of one test file. */
export async function makeFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(memoryFolder(), 'pod-bin-test-'))
  return {
    path,
    async remove() {
      const database = databasePid(path)
      if (database !== undefined && isAlive(database)) process.kill(database, 'SIGQUIT') // a test failed before its cleanup
      await rm(path, { recursive: true, force: true, maxRetries: 20 })
    },
  }
}

/** A folder for data, with an embedded database that has all tables and no accounts. */
export async function makePreparedFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const folder = await makeFolder()
  await copyPreparedData(folder.path)
  return folder
}

/** The embedded database of a data folder, unless it was stopped in order. */
export function databasePid(dataDir: string): number | undefined {
  const pidFile = join(dataDir, 'postgres', 'postmaster.pid')
  return existsSync(pidFile) ? Number.parseInt(readFileSync(pidFile, 'utf8'), 10) : undefined
}

interface CommandOptions {
  readonly input?: string
  /** A working folder with a file `.env`. The command has a process of its own. */
  readonly cwd?: string
  /** As an operator starts it: for what a process does at its start and end. Takes a second longer. */
  readonly ownProcess?: boolean
}

/** Commands that run until they are stopped, and end their process themselves. */
const PROCESSES: readonly string[] = ['start', 'web', 'worker']

let runner: CommandRunner | undefined

/** Runs one command of the compiled program to its end, in a process that is kept for the next one; beside another command, in its own. */
export async function pod(
  words: readonly string[],
  settings: Settings,
  options: CommandOptions = {},
): Promise<Outcome> {
  const { input = '', cwd, ownProcess = cwd !== undefined || PROCESSES.includes(words[0] ?? '') } = options
  if (ownProcess || runner?.isBusy()) return runInOwnProcess(words, settings, input, cwd)
  requireProgram()
  if (runner?.hasEnded() !== false)
    runner = openCommandRunner(PROGRAM_MODULE, { preload: SHORT_KEYS, cwd: NO_ENV_FILE_HERE })
  const timer = setTimeout(runner.kill, MAX_COMMAND_MS)
  return runner.run({ args: words, environment: environmentOf(settings), input }).finally(() => clearTimeout(timer))
}

async function runInOwnProcess(
  words: readonly string[],
  settings: Settings,
  input: string,
  cwd: string | undefined,
): Promise<Outcome> {
  const child = launch(words, settings, cwd)
  child.stdin?.end(input)
  const output = collect(child)
  const timer = setTimeout(() => child.kill('SIGKILL'), MAX_COMMAND_MS)
  const [code]: [number | null] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  return { code, ...output }
}

/** The fields of a log line that tests use. */
interface LogLine {
  readonly name?: string
  readonly process?: string
  readonly msg?: string
  readonly pid?: number
  readonly address?: string
}

export interface RunningProgram {
  readonly child: ChildProcess
  readonly output: { readonly stdout: string; readonly stderr: string }
  /** The next line of output that matches. */
  logged<Line extends object = LogLine>(fits: (line: Line) => boolean): Promise<Line>
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>
}

/** Starts a command that runs until it is stopped. */
export function start(words: readonly string[], settings: Settings): RunningProgram {
  const child = launch(words, settings)
  const output = collect(child)
  const ended = once(child, 'close').then(([code]: (number | null)[]) => code ?? null)
  const waiting = new Set<(line: object) => void>()
  if (!child.stdout) throw new Error('The program has no output.')
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text)
    for (const look of waiting) look(line)
  })

  return {
    child,
    output,
    ended,
    logged<Line extends object>(fits: (line: Line) => boolean) {
      return new Promise<Line>((resolve, reject) => {
        const look = (line: object) => {
          if (!fits(line as Line)) return // the caller says what lines it waits for
          waiting.delete(look)
          resolve(line as Line)
        }
        waiting.add(look)
        void ended.then((code) => reject(new Error(`It ended with ${code}:\n${output.stderr}${output.stdout}`)))
      })
    },
  }
}

/** Runs a command on a terminal, which util-linux's `script` makes. An answer is typed once its question is shown. */
export async function runOnTerminal(
  words: readonly string[],
  settings: Settings,
  answers: readonly (readonly [question: string, answer: string])[],
): Promise<Outcome> {
  requireProgram()
  const command = [process.execPath, PROGRAM, ...words].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
    cwd: NO_ENV_FILE_HERE,
    env: environmentOf(settings),
    stdio: 'pipe',
  })
  const output = collect(child)
  const ended = once(child, 'close').then(([code]: (number | null)[]) => code ?? null)
  for (const [question, answer] of answers) {
    await until(() => output.stdout.includes(question) || child.exitCode !== null)
    child.stdin?.write(`${answer}\r`)
  }
  return { code: await ended, ...output }
}

interface ReadyLine {
  readonly ready?: boolean
  readonly address: string
  readonly admin: { readonly web: string; readonly worker: string }
  readonly pids: { readonly web: number; readonly worker: number; readonly database: number }
  readonly warnings: readonly string[]
}

export interface StartedPod extends RunningProgram, Omit<ReadyLine, 'ready'> {}

/** Starts a whole pod and waits for its log line of readiness. */
export async function startPod(settings: Settings): Promise<StartedPod> {
  const program = start(['start', '--json'], settings)
  const { address, admin, pids, warnings } = await program.logged<ReadyLine>((line) => line.ready === true)
  return { ...program, address, admin, pids, warnings }
}

/** A zombie process, for example in a container without an init, is not alive. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Polls until the condition is true; the time limit of the test ends it. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(20)
}

/** The status of the response; 0 without a response. */
export async function statusOf(url: string, init?: RequestInit): Promise<number> {
  return fetch(url, init).then(
    (response) => response.status,
    () => 0,
  )
}

function requireProgram(): void {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: compile it first, with "npm run build".`)
}

function environmentOf(settings: Settings): Readonly<Record<string, string | undefined>> {
  return {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    NODE_OPTIONS: `--require ${SHORT_KEYS}`,
    PORT: '0',
    ADMIN_LISTEN: '127.0.0.1:0',
    ...settings,
  }
}

function launch(words: readonly string[], settings: Settings, cwd = NO_ENV_FILE_HERE): ChildProcess {
  requireProgram()
  return spawn(process.execPath, [PROGRAM, ...words], {
    cwd,
    env: environmentOf(settings),
    stdio: 'pipe',
    // Like a command in a terminal: the leader of its own group, which is what Ctrl-C reaches.
    detached: true,
  })
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text
  })
  return output
}
