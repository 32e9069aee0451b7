import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { testLogLevel } from '../assertions/test-log.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const entries = { web: 'src/server', worker: 'workers/main' } as const

/** The entry file of a process and the loaders of Node: the source, or the compiled files in the folder COMPILED_POD. */
export function programOf(
  kind: keyof typeof entries,
  compiled = process.env['COMPILED_POD'],
): { readonly entry: string; readonly loaders: readonly string[] } {
  return compiled === undefined
    ? { entry: join(root, `${entries[kind]}.ts`), loaders: [import.meta.resolve('tsx')] }
    : { entry: join(compiled, `${entries[kind]}.js`), loaders: [] }
}

/** A process of a pod, as in the Procfile. */
export interface PodProcess {
  readonly pid: number
  /** URL of a web process, such as `http://127.0.0.1:40123`. Empty for a worker. */
  readonly base: string
  /** All log lines so far. */
  readonly logged: readonly Record<string, unknown>[]
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  signal(signal: NodeJS.Signals): void
  /** Sends a message to the preloaded modules. */
  send(message: object): void
  /** Resolves with the next message of a preloaded module. */
  nextMessage(): Promise<unknown>
  /** Sends SIGKILL, and resolves when the process has ended. */
  kill(): Promise<void>
}

interface ProgramOptions {
  /** Modules that are loaded before the pod, and may replace parts of it. */
  readonly preloaded?: readonly string[]
  /** The folder `dist` of another program. */
  readonly compiled?: string | undefined
}

/** Resolves when the process is ready. */
export async function startPodProcess(
  kind: keyof typeof entries,
  settings: NodeJS.ProcessEnv,
  folder: string,
  { preloaded = [], compiled }: ProgramOptions = {},
): Promise<PodProcess> {
  const { entry, loaders } = programOf(kind, compiled)
  const child = fork(entry, {
    cwd: folder,
    env: { PATH: process.env['PATH'], DATA_DIR: folder, PORT: '0', ADMIN_LISTEN: '', ...settings },
    execArgv: [...loaders, ...preloaded].flatMap((module) => ['--import', module]),
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const killOnExit = () => void child.kill('SIGKILL')
  process.once('exit', killOnExit)
  const ended = once(child, 'exit').then(([code, signal]) => {
    process.off('exit', killOnExit)
    return { code, signal }
  })
  const logged = recordOutput(child)
  const base = await untilReady(child, ended, kind)
  return {
    pid: child.pid ?? Number.NaN,
    base,
    logged,
    ended,
    signal: (signal) => void child.kill(signal),
    send: (message) => void child.send(message),
    nextMessage: async () => (await once(child, 'message'))[0],
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

async function untilReady(child: ChildProcess, ended: Promise<unknown>, kind: string): Promise<string> {
  const failed = ended.then(() => Promise.reject(new Error(`The ${kind} process exited before it was ready.`)))
  failed.catch(() => undefined)
  const [{ address }] = (await Promise.race([once(child, 'message'), failed])) as [{ address: string | null }] // the first message
  return address === null ? '' : new URL(address).origin
}

function recordOutput(child: ChildProcess): readonly Record<string, unknown>[] {
  const logged: Record<string, unknown>[] = []
  if (!child.stdout) throw new Error('The process has no output.')
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('{')) logged.push(JSON.parse(line))
    if (testLogLevel !== undefined) console.log(line)
  })
  return logged
}
