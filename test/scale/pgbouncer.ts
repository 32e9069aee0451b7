import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { startPodUnderFaults } from '../faults/matrix/pod-under-faults.js'
import { until } from '../soak/until.js'
import { createTables } from '../support/databases/create-tables.js'
import { openEventStream } from '../support/http/event-stream.js'
import { freePort } from '../support/http/free-port.js'
import { sendBurst } from './burst.js'
import { ensureProgram } from './debian-packages.js'
import { type Outcome, type ScaleOptions, withCleanups } from './part.js'

const PACKAGES = ['pgbouncer', 'libevent-2.1-7', 'libc-ares2']
const READY_WITHIN = 10_000

/**
 * PgBouncer in session mode between the pod and its database, with its queue in the same database: migrations, inbound messages,
 * blocking waits for jobs, named statements and live events all pass through it.
 */
export async function scalePgbouncer({ messages }: ScaleOptions): Promise<Outcome> {
  const program = await ensureProgram('pgbouncer', PACKAGES)
  return withCleanups(async (cleanups) => {
    const folder = await mkdtemp(join(tmpdir(), 'pod-scale-pgbouncer-'))
    cleanups.push(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 25 }))
    const database = await startEmbeddedPostgres(join(folder, 'database'))
    cleanups.push(() => database.stop())
    const pooler = await startPgbouncer(program, folder, new URL(database.url))
    cleanups.push(() => pooler.stop())
    await createTables(pooler.url)
    const podUnderFaults = await startPodUnderFaults({ store: 'PostgreSQL', settings: { DATABASE_URL: pooler.url } })
    cleanups.push(() => podUnderFaults.close())

    const [web] = podUnderFaults.processes.web
    const stream = await openEventStream({ base: web?.base ?? '', token: podUnderFaults.alice.token })
    await stream.placed()
    const direct = new pg.Client(database.url)
    await direct.connect()
    let connections: readonly { name: string; count: number }[] = []
    const burst = await sendBurst(podUnderFaults, messages, async ({ untilAccepted }) => {
      await untilAccepted(0.8)
      connections = await countConnections(direct)
    }).finally(() => direct.end())
    const events = stream.events.length
    stream.close()
    const all = connections.reduce((sum, { count }) => sum + count, 0)
    return {
      results: [
        ...burst.results,
        ['live events received', events],
        ...connections.map(({ name, count }) => [`connections of ${name}`, count] as const),
        ['connections through PgBouncer', all],
      ],
      violations: [
        ...burst.violations,
        ...(events === 0 ? ['no live event was received'] : []),
        ...(all === 0 ? ['no client was connected through PgBouncer'] : []),
      ],
    }
  })
}

async function startPgbouncer(program: string, folder: string, database: URL) {
  const port = await freePort()
  const settings = join(folder, 'pgbouncer.ini')
  const server = `host=${database.hostname} port=${database.port} dbname=${database.pathname.slice(1)}`
  const lines = [
    '[databases]',
    `pod = ${server} user=${database.username} password=${database.password}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = session',
    'default_pool_size = 190',
    'max_client_conn = 500',
    // PgBouncer refuses to run as root.
    ...(process.geteuid?.() === 0 ? ['user = nobody'] : []),
    '',
  ]
  await writeFile(settings, lines.join('\n'))
  await chmod(folder, 0o755)
  await chmod(settings, 0o644)
  const child = spawn(program, [settings], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
  const cleanUpOnExit = () => void child.kill('SIGKILL')
  process.once('exit', cleanUpOnExit)
  const url = `postgres://pod@127.0.0.1:${port}/pod`
  await until('PgBouncer responds', READY_WITHIN, async () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer has exited: ${output}`)
    const client = new pg.Client(url)
    await client.connect()
    await client.end()
    return true
  })
  return {
    url,
    async stop() {
      process.off('exit', cleanUpOnExit)
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Connections by application, without the session of this query and those of the server start. */
async function countConnections(client: pg.Client): Promise<readonly { name: string; count: number }[]> {
  const { rows } = await client.query<{ name: string; count: number }>(`
    select case when application_name like 'pod %' then application_name else 'the queues' end as name, count(*)::int as count
    from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid() and application_name not like 'process %'
    group by 1 order by 1`)
  return rows
}
