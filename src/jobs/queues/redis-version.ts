import { once } from 'node:events'
import { Cluster } from 'ioredis'
import { readRedisAddress } from './redis-address.js'
import { connectToRedis } from './redis-store.js'

const WITHIN_MS = 3_000

/** The version that a Redis, or a program with its protocol, states. Throws if it does not answer. */
export async function readRedisVersion(redisUrl: string): Promise<string> {
  const address = readRedisAddress(redisUrl)
  if (address === undefined) throw new Error('This is not an address of a Redis.')
  const connection = connectToRedis(address, { isPatient: false }).on('error', () => undefined)
  try {
    await once(connection, 'ready', { signal: AbortSignal.timeout(WITHIN_MS) })
    const server = connection instanceof Cluster ? connection.nodes('master')[0] : connection
    return /^redis_version:(\S+)/m.exec((await server?.info('server')) ?? '')?.[1] ?? 'unknown'
  } finally {
    connection.disconnect()
  }
}
