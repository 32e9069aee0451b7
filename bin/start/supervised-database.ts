import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type EmbeddedServer, startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import type { Config } from '../../src/config/config.js'
import { StartError } from '../../src/errors/start-error.js'
import { CommandError } from '../command-error.js'
import { createRestartBackoff, MAX_CRASHES_IN_A_ROW } from './restart-backoff.js'

export interface SupervisedDatabase {
  /** The current URL. After a crash the server returns at the same port if it is free. */
  url(): string
  /** `undefined`: an external database. */
  pid(): number | undefined
  /** Rejects when the embedded server is given up; never resolves. */
  readonly failed: Promise<never>
  stop(): Promise<void>
}

const ATTEMPTS = 5

/** The configured database, or the embedded one, which is restarted after crashes. */
export async function superviseDatabase(
  config: Config,
  log: Logger,
  listener: { onUrlChanged(): void },
): Promise<SupervisedDatabase> {
  const { databaseUrl } = config
  if (databaseUrl !== undefined) {
    return {
      url: () => databaseUrl,
      pid: () => undefined,
      failed: new Promise(() => undefined),
      stop: async () => undefined,
    }
  }

  let server = await startServer(config.dataDir)
  let startedAt = performance.now()
  let isStopping = false
  const nextPause = createRestartBackoff()

  async function keep(): Promise<never> {
    for (;;) {
      await server.exited
      if (isStopping) return new Promise<never>(() => undefined)
      const wait = nextPause(performance.now() - startedAt)
      if (wait === undefined) {
        throw new CommandError(
          `Stopping: the database crashed more than ${MAX_CRASHES_IN_A_ROW} times in a row. See ${config.dataDir}/postgres.log.`,
        )
      }
      log.error({ process: 'database' }, 'database ended')
      await pause(wait)
      if (isStopping) return new Promise<never>(() => undefined)
      const { url } = server
      server = await startServer(config.dataDir)
      startedAt = performance.now()
      if (isStopping) await server.stop()
      log.info({ process: 'database', pid: server.pid }, 'database restarted')
      if (server.url !== url) listener.onUrlChanged()
    }
  }

  const failed = keep()
  failed.catch(() => undefined) // reported through `failed`
  return {
    url: () => server.url,
    pid: () => server.pid,
    failed,
    async stop() {
      isStopping = true
      await server.stop()
    },
  }
}

/** A command that started the server may stop it while this process takes over. */
async function startServer(dataDir: string): Promise<EmbeddedServer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startEmbeddedPostgres(dataDir)
    } catch (error) {
      if (error instanceof StartError || attempt === ATTEMPTS) throw error
    }
  }
}
