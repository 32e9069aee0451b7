import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../../embedded-postgres/embedded-postgres.js'
import { createTables } from './create-tables.js'
import { copyPreparedData } from './prepared-data.js'
import { type Standby, startStandby } from './standby.js'

/** A database server of one test file, with all tables, and a replica of it. */
export interface ReplicatedDatabase {
  readonly url: string
  readonly standby: Standby
  stop(): Promise<void>
}

/** With `prepared: false` the server has a new system identifier. All other servers of a run are copies of one database. */
export async function startReplicatedDatabase({ prepared = true } = {}): Promise<ReplicatedDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-test-primary-'))
  // The log is flushed by whole pages first. A record that continues on the next page is complete, and replayed, one delay later: with
  // the second of the embedded database, the replica would be late without any write.
  if (prepared) await copyPreparedData(folder)
  const server = await startEmbeddedPostgres(folder, { settings: { wal_writer_delay: '10ms' } })
  const cleanUpOnExit = () => void process.kill(server.pid, 'SIGKILL')
  process.once('exit', cleanUpOnExit)
  await createTables(server.url)
  const standby = await startStandby(server.superuserUrl)
  return {
    url: server.url,
    standby,
    async stop() {
      await standby.stop()
      process.off('exit', cleanUpOnExit)
      await server.stop()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 25 })
    },
  }
}
