import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { until } from '../../soak/until.js'
import { freePort } from '../http/free-port.js'
import { type OwnRedis, redisProgram, startRedisServer, whyNoRedis } from './redis-server.js'

/** A master with replicas, and Sentinels that promote a replica when the master fails. */
export interface WatchedRedis {
  /** Value of REDIS_URL. */
  readonly url: string
  /** All servers. The first one is the master at the start. */
  readonly servers: readonly OwnRedis[]
  /** Port of the master, as the Sentinels see it. */
  masterPort(): Promise<number>
  stop(): Promise<void>
}

const MASTER = 'pod'
const SENTINELS = 3
const READY_WITHIN = 30_000
const DOWN_AFTER = 1_000

/** Two replicas by default. The settings apply to each server, because a replica may become the master. */
export async function startWatchedRedis(replicas = 2, ...settings: readonly string[]): Promise<WatchedRedis> {
  const program = redisProgram()
  if (program === undefined) throw new Error(whyNoRedis())
  const common = [
    '--appendfsync',
    'always',
    '--repl-diskless-sync-delay',
    '0',
    '--min-replicas-max-lag',
    '2',
    ...settings,
  ]
  const master = await startRedisServer(program, common)
  const masterPort = new URL(master.url).port
  const follow = ['--replicaof', `127.0.0.1 ${masterPort}`]
  const others = await Promise.all(
    Array.from({ length: replicas }, () => startRedisServer(program, [...common, ...follow])),
  )
  const servers = [master, ...others]
  const folder = await mkdtemp(join(tmpdir(), 'pod-test-sentinel-'))
  const ports = await Promise.all(Array.from({ length: SENTINELS }, freePort))
  const sentinels: ChildProcess[] = []
  const cleanUpOnExit = () => {
    for (const sentinel of sentinels) sentinel.kill('SIGKILL')
  }
  process.once('exit', cleanUpOnExit)

  async function stop(): Promise<void> {
    process.off('exit', cleanUpOnExit)
    const running = sentinels.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
    const ended = Promise.all(running.map((sentinel) => once(sentinel, 'exit')))
    cleanUpOnExit()
    await ended
    await Promise.all(servers.map((server) => server.stop()))
    await rm(folder, { recursive: true, force: true })
  }

  try {
    for (const port of ports) {
      const file = join(folder, `${port}.conf`)
      await writeFile(file, sentinelSettings(port, folder, masterPort))
      sentinels.push(spawn(program, [file, '--sentinel'], { stdio: 'ignore' }))
    }
    const clients = ports.map((port) => new Redis(port, '127.0.0.1').on('error', () => {}))
    await until('the Sentinels know each other and all replicas', READY_WITHIN, async () => {
      const views = await Promise.all(clients.map((client) => client.call('SENTINEL', 'MASTER', MASTER)))
      return views.every(
        (view) => countIn(view, 'num-other-sentinels') === SENTINELS - 1 && countIn(view, 'num-slaves') === replicas,
      )
    }).finally(() => {
      for (const client of clients) client.disconnect()
    })
    return {
      url: `redis+sentinel://${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER}`,
      servers,
      async masterPort() {
        const client = new Redis(ports[0] ?? 0, '127.0.0.1').on('error', () => {})
        const address = await client
          .call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER)
          .finally(() => client.disconnect())
        return Number(Array.isArray(address) ? address[1] : Number.NaN)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

function sentinelSettings(port: number, folder: string, masterPort: string): string {
  return [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor ${MASTER} 127.0.0.1 ${masterPort} ${Math.floor(SENTINELS / 2) + 1}`,
    `sentinel down-after-milliseconds ${MASTER} ${DOWN_AFTER}`,
    `sentinel failover-timeout ${MASTER} 3000`,
    `sentinel parallel-syncs ${MASTER} 2`,
    '',
  ].join('\n')
}

/** A number in a reply of alternating names and values. */
function countIn(view: unknown, name: string): number {
  const fields = Array.isArray(view) ? view.map(String) : []
  return Number(fields[fields.indexOf(name) + 1])
}
