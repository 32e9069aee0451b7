import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../../embedded-postgres/embedded-postgres.js'

/** A streaming replica that a test can pause and kill. */
export interface Standby {
  readonly url: string
  readonly pid: number
  /** Pauses replay: the replica receives changes, but queries do not see them. */
  hold(): Promise<void>
  follow(): Promise<void>
  kill(): Promise<void>
  stop(): Promise<void>
}

/** Files that belong to a running server, or that the copy gets through its connection. */
const LEFT_OUT = ['postmaster.pid', 'postmaster.opts', 'pg_wal', 'pg_replslot', 'postgresql.auto.conf']

/** Copies the files of a running server as a base backup, and starts a replica on them. The URL must be of a superuser. */
export async function startStandby(primaryUrl: string): Promise<Standby> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-test-standby-'))
  const data = join(folder, 'postgres')
  await mkdir(data, { mode: 0o700 })
  const maxConnections = await withClient(primaryUrl, async (client) => {
    const { rows } = await client.query<{ folder: string }>(`select current_setting('data_directory') as folder`)
    await client.query(`select pg_backup_start('standby', true)`)
    await cp(rows[0]?.folder ?? '', data, {
      recursive: true,
      filter: (source) => !LEFT_OUT.includes(basename(source)),
    })
    const { rows: labels } = await client.query<{ label: string }>(
      'select labelfile as label from pg_backup_stop(false)',
    )
    await writeFile(join(data, 'backup_label'), labels[0]?.label ?? '')
    const { rows: most } = await client.query<{ connections: string }>(
      `select current_setting('max_connections') as connections`,
    )
    return Number(most[0]?.connections)
  })
  for (const each of ['pg_wal', 'pg_replslot']) await mkdir(join(data, each), { mode: 0o700 })
  const { username, password, hostname, port } = new URL(primaryUrl)
  const source = `host=${hostname} port=${port} user=${username} password=${password}`
  await writeFile(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`)
  await writeFile(join(data, 'standby.signal'), '')

  const server = await startEmbeddedPostgres(folder, { maxConnections })
  const cleanUpOnExit = () => void process.kill(server.pid, 'SIGKILL')
  process.once('exit', cleanUpOnExit)
  return {
    url: server.url,
    pid: server.pid,
    hold: () =>
      withClient(server.superuserUrl, async (client) => void (await client.query('select pg_wal_replay_pause()'))),
    follow: () =>
      withClient(server.superuserUrl, async (client) => void (await client.query('select pg_wal_replay_resume()'))),
    async kill() {
      process.kill(server.pid, 'SIGKILL')
      await server.exited
    },
    async stop() {
      process.off('exit', cleanUpOnExit)
      await server.stop()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 25 })
    },
  }
}

async function withClient<Result>(url: string, run: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}
