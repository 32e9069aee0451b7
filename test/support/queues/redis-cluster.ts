import { Redis } from 'ioredis'
import { until } from '../../soak/until.js'
import { freePort } from '../http/free-port.js'
import { type OwnRedis, redisProgram, startRedisServer, whyNoRedis } from './redis-server.js'

/** Servers that share all hash slots. */
export interface RedisCluster {
  /** Value of REDIS_URL. */
  readonly url: string
  readonly masters: readonly OwnRedis[]
  /** The replica of each master, in the same order. Empty without replication. */
  readonly replicas: readonly OwnRedis[]
  stop(): Promise<void>
}

const SLOTS = 16_384
const MASTERS = 3
const READY_WITHIN = 30_000

export async function startRedisCluster({ replicated = false } = {}): Promise<RedisCluster> {
  const program = redisProgram()
  if (program === undefined) throw new Error(whyNoRedis())
  const count = replicated ? 2 * MASTERS : MASTERS
  const buses = await Promise.all(Array.from({ length: count }, freePort))
  const servers = await Promise.all(
    buses.map((bus) =>
      startRedisServer(program, [
        ...['--cluster-enabled', 'yes', '--cluster-port', `${bus}`, '--cluster-node-timeout', '1000'],
        ...['--appendfsync', 'always', '--repl-diskless-sync-delay', '0'],
      ]),
    ),
  )
  const clients = servers.map(({ url }) => new Redis(url).on('error', () => {}))
  try {
    const [masters, replicas] = [servers.slice(0, MASTERS), servers.slice(MASTERS)]
    await joinNodes(clients, servers, buses)
    for (const [index, client] of clients.slice(MASTERS).entries()) {
      const master = await clients[index]?.cluster('MYID')
      await until(
        'the master is known',
        READY_WITHIN,
        async () => (await client.cluster('REPLICATE', `${master}`)) === 'OK',
      )
    }
    await until('the cluster is complete', READY_WITHIN, async () => {
      const states = await Promise.all(clients.map((client) => isReady(client, count)))
      return states.every(Boolean)
    })
    const hosts = masters.map(({ url }) => new URL(url).host)
    return {
      url: `redis+cluster://${hosts.join(',')}`,
      masters,
      replicas,
      async stop() {
        await Promise.all(servers.map((server) => server.stop()))
      },
    }
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()))
    throw error
  } finally {
    for (const client of clients) client.disconnect()
  }
}

async function joinNodes(
  clients: readonly Redis[],
  servers: readonly OwnRedis[],
  buses: readonly number[],
): Promise<void> {
  for (const [index, client] of clients.slice(0, MASTERS).entries()) {
    const [from, to] = [index, index + 1].map((part) => Math.floor((part * SLOTS) / MASTERS))
    await client.call('CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${(to ?? 0) - 1}`)
    await client.cluster('SET-CONFIG-EPOCH', index + 1)
  }
  for (const [index, { url }] of servers.entries()) {
    if (index > 0) await clients[0]?.call('CLUSTER', 'MEET', '127.0.0.1', new URL(url).port, `${buses[index]}`)
  }
  await until('all nodes know each other', READY_WITHIN, async () => {
    const known = await Promise.all(clients.map((client) => client.cluster('INFO')))
    return known.every((info) => String(info).includes(`cluster_known_nodes:${clients.length}\r`))
  })
}

/** Whether a node is ready and, if it is a replica, linked to its master. */
async function isReady(client: Redis, count: number): Promise<boolean> {
  const info = String(await client.cluster('INFO'))
  const replication = await client.info('replication')
  const isLinked = !replication.includes('role:slave') || replication.includes('master_link_status:up')
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${count}\r`) && isLinked
}
