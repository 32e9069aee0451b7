import { Redis } from 'ioredis'
import { startPodUnderFaults } from '../faults/matrix/pod-under-faults.js'
import { type RedisCluster, startRedisCluster } from '../support/queues/redis-cluster.js'
import type { OwnRedis } from '../support/queues/redis-server.js'
import { sendBurst } from './burst.js'
import { type Outcome, type ScaleOptions, withCleanups } from './part.js'
import { ensureRedis } from './redis-program.js'

/** The queue in a Redis Cluster of three nodes, of which the busiest is killed during the burst and restarts with its data file. */
export async function scaleCluster({ messages }: ScaleOptions): Promise<Outcome> {
  await ensureRedis()
  return withCleanups(async (cleanups) => {
    const cluster = await startRedisCluster()
    cleanups.push(() => cluster.stop())
    const podUnderFaults = await startPodUnderFaults({ store: 'PostgreSQL', settings: { REDIS_URL: cluster.url } })
    cleanups.push(() => podUnderFaults.close())

    const { results, violations } = await sendBurst(podUnderFaults, messages, async ({ untilAccepted }) => {
      await untilAccepted(0.3)
      const [busiest] = (await sharesOf(cluster)).toSorted((one, other) => other.commands - one.commands)
      await busiest?.node.crash()
    })
    const shares = await sharesOf(cluster)
    return {
      results: [
        ...shares.map(({ tags }, index) => [`queues on node ${index + 1}`, tags.join(' ')] as const),
        ...results,
      ],
      violations,
    }
  })
}

function sharesOf({ masters }: RedisCluster) {
  return Promise.all(masters.map(shareOf))
}

async function shareOf(node: OwnRedis) {
  const client = new Redis(node.url)
  try {
    const keys = await client.keys('*')
    const commands = Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1])
    const tags = new Set(keys.flatMap((key) => /-([a-z-]+)\}/.exec(key)?.[1] ?? []))
    return { node, commands, tags: [...tags].toSorted() }
  } finally {
    client.disconnect()
  }
}
