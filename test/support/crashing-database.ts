import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedServer, startEmbeddedPostgres } from '../../src/embedded-postgres.js'
import { openTcpProxy } from './tcp-proxy.js'

/** A server of one test's own that may be killed, always at the same address. */
export interface CrashingDatabase {
  readonly url: string
  /** kill -9, and up again with what its log remembers. */
  crash(): Promise<void>
  stop(): Promise<void>
}

export async function startCrashingDatabase(): Promise<CrashingDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-test-kill-'))
  let server: EmbeddedServer = await startEmbeddedPostgres(folder)
  const proxy = await openTcpProxy(Number(new URL(server.url).port))
  const leaveNothing = () => {
    process.kill(server.pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 25 })
  }
  process.once('exit', leaveNothing)
  return {
    url: Object.assign(new URL(server.url), { port: `${proxy.port}` }).href,
    async crash() {
      process.kill(server.pid, 'SIGKILL')
      await server.exited
      server = await startEmbeddedPostgres(folder)
      proxy.target(Number(new URL(server.url).port))
    },
    async stop() {
      process.off('exit', leaveNothing)
      await proxy.close()
      await server.stop()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 25 })
    },
  }
}
