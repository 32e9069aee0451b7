import { existsSync } from 'node:fs'
import type { Logger } from 'pino'
import { type Config, readConfig } from '../config/config.js'
import { endUnstarted, StartError } from '../errors/start-error.js'
import { openLog } from '../logging/log.js'
import { PROCESS_LIMITS } from './limits.js'

/** The running process, for the function that starts its parts. */
export interface RunningProcess {
  readonly log: Logger
  isClosing(): boolean
  /** Logs the error and ends the process. */
  fail(error: unknown): never
}

/** Opens the parts of a process. Returns a function that closes them in reverse order. */
type StartProcess = (config: Config, process: RunningProcess) => Promise<() => Promise<void>>

/**
 * Runs an entry point until a signal ends it. The first signal closes the parts. A second one ends the process at once, as does one
 * before the start is complete. After an uncaught error the state of the process is unknown, so it ends; the supervisor starts another,
 * and its running jobs return as stalled jobs.
 */
export async function runProcess(kind: 'web' | 'worker', start: StartProcess): Promise<void> {
  let log: Logger | undefined
  let close: (() => Promise<void>) | undefined
  let isClosing = false

  async function end(): Promise<void> {
    if (isClosing || close === undefined) process.exit(isClosing ? 1 : 0)
    isClosing = true
    setTimeout(() => process.exit(1), PROCESS_LIMITS.closeMs).unref()
    try {
      await close()
      process.exit(0)
    } catch (error) {
      fail(error)
    }
  }

  function fail(error: unknown): never {
    if (log) log.fatal({ err: error }, kind === 'web' ? 'web process failed' : 'worker failed')
    else console.error(error)
    process.exit(1)
  }

  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void end())
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, fail)
  try {
    if (existsSync('.env')) process.loadEnvFile('.env')
    const config = readConfig(process.env)
    log = openLog(config, kind)
    close = await start(config, { log, isClosing: () => isClosing, fail })
  } catch (error) {
    if (!(error instanceof StartError)) fail(error)
    endUnstarted(error)
  }
}
