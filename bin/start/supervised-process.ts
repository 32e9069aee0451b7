import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import type { Logger } from 'pino'
import { CommandError } from '../command-error.js'
import { createRestartBackoff, MAX_CRASHES_IN_A_ROW } from './restart-backoff.js'

/** The message of web and worker to their parent when ready; `null`: no listener. */
interface Ready {
  readonly address: string | null
  readonly admin: string | null
}

/** The message of a process that cannot start: the reason. */
interface Refused {
  readonly refused: string
}

export interface RunningProcess extends Ready {
  readonly pid: number
}

export interface ProcessPlan {
  readonly name: string
  readonly file: URL
  /** The environment of the next start; `last` is the previous ready message. */
  environment(last: RunningProcess | undefined): NodeJS.ProcessEnv
}

export interface SupervisedProcess {
  /** Resolves when the process is ready for the first time; rejects when it gives up before. */
  readonly ready: Promise<RunningProcess>
  /** Rejects when the process is given up; never resolves. */
  readonly failed: Promise<never>
  /** Stops the process: SIGTERM, after `limit` milliseconds SIGKILL. Resolves when it has ended. */
  stop(limit: number): Promise<void>
  /** Restarts the process with its current environment. */
  restart(): void
  kill(): void
}

/** Runs a process and restarts it after crashes with growing pauses; gives up if it cannot start. */
export function superviseProcess(plan: ProcessPlan, log: Logger): SupervisedProcess {
  let child: ChildProcess | undefined
  let pause: NodeJS.Timeout | undefined
  let lastReady: RunningProcess | undefined
  let readyAt: number | undefined
  let refusal: string | undefined
  let isStopping = false
  let becomeReady: (running: RunningProcess) => void
  let giveUp: (error: CommandError) => void
  const nextPause = createRestartBackoff()
  const failed = new Promise<never>((_, reject) => {
    giveUp = reject
  })
  const ready = Promise.race([
    failed,
    new Promise<RunningProcess>((resolve) => {
      becomeReady = resolve
    }),
  ])

  function start(): void {
    readyAt = undefined
    refusal = undefined
    const newChild = fork(plan.file, {
      env: plan.environment(lastReady),
      execArgv: [
        ...process.execArgv,
        '--import',
        new URL(`./end-with-parent${extname(import.meta.url)}`, import.meta.url).href,
      ],
      // A process group of its own: Ctrl-C must not reach it in addition to our signal.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    child = newChild
    newChild.on('message', (message) => {
      const { pid } = newChild
      if (isRefused(message)) refusal = message.refused
      if (!isReady(message) || pid === undefined) return
      if (lastReady !== undefined) log.info({ process: plan.name, pid }, 'process restarted')
      readyAt = performance.now()
      lastReady = { address: message.address, admin: message.admin, pid }
      becomeReady(lastReady)
    })
    newChild.on('error', (error) => {
      log.error({ process: plan.name, err: error }, 'process error')
      if (newChild.pid === undefined) handleEnd(null, null) // spawn failed, so there is no exit event
    })
    newChild.once('exit', handleEnd)
  }

  function handleEnd(code: number | null, signal: NodeJS.Signals | null): void {
    child = undefined
    if (isStopping) return
    const how = refusal ?? signal ?? (code === null ? 'no process could be made' : `exit code ${code}`)
    const ranFor = readyAt === undefined ? 0 : performance.now() - readyAt
    const wait = lastReady === undefined ? undefined : nextPause(ranFor)
    if (wait === undefined) {
      const what =
        lastReady === undefined ? 'could not start' : `crashed more than ${MAX_CRASHES_IN_A_ROW} times in a row`
      giveUp(new CommandError(refusal ?? `Stopping: the ${plan.name} process ${what} (${how}).`))
    } else {
      log.error({ process: plan.name, how, restartSeconds: wait / 1_000 }, 'process ended, restarting')
      pause = setTimeout(start, wait)
    }
  }

  start()
  return {
    ready,
    failed,
    async stop(limit) {
      isStopping = true
      clearTimeout(pause)
      const running = child
      if (running === undefined) return
      await new Promise<void>((resolve) => {
        const deadline = setTimeout(() => {
          log.error({ process: plan.name }, 'process did not stop in time, killing it')
          running.kill('SIGKILL')
        }, limit)
        running.once('exit', (code, signal) => {
          clearTimeout(deadline)
          if (code !== 0 && readyAt !== undefined)
            log.warn({ process: plan.name, how: signal ?? code }, 'process did not exit cleanly')
          resolve()
        })
        running.kill('SIGTERM')
      })
    },
    restart() {
      child?.kill('SIGTERM')
    },
    kill() {
      isStopping = true
      clearTimeout(pause)
      child?.kill('SIGKILL')
    },
  }
}

function isRefused(message: unknown): message is Refused {
  return typeof message === 'object' && message !== null && 'refused' in message && typeof message.refused === 'string'
}

function isReady(message: unknown): message is Ready {
  return typeof message === 'object' && message !== null && 'ready' in message && message.ready === true
}
