import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../../embedded-postgres/embedded-postgres.js'
import { migrateQueue } from '../../../src/jobs/queues/queue-schema.js'
import { migrate, openDatabase, WORKER_LIMITS } from '../../../src/persistence/database/database.js'
import { type Standby, startStandby } from './standby.js'

/** A database of one test file's own, with its tables, and a replica of it. */
export interface ReplicatedDatabase {
  readonly url: string
  readonly standby: Standby
  stop(): Promise<void>
}

export async function startReplicatedDatabase(): Promise<ReplicatedDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-test-primary-'))
  const server = await startEmbeddedPostgres(folder)
  const leaveNothing = () => void process.kill(server.pid, 'SIGKILL')
  process.once('exit', leaveNothing)
  const db = openDatabase({ ...WORKER_LIMITS, url: server.url, applicationName: 'pod migrate' })
  await migrate(db)
  await db.destroy()
  await migrateQueue(server.url)
  const standby = await startStandby(server.superuserUrl)
  return {
    url: server.url,
    standby,
    async stop() {
      await standby.stop()
      process.off('exit', leaveNothing)
      await server.stop()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 25 })
    },
  }
}
