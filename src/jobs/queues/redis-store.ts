import { createRedisBackend } from 'bullmq'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { redisCountFailedJobs, redisFailedJobs, redisFailedQueues } from '../bullmq/failed-jobs.js'
import { redisNextJobs, redisSummaries } from '../bullmq/job-summaries.js'
import type { QueueStore, Report } from './queue-store.js'
import { type RedisAddress, readRedisAddress } from './redis-address.js'

interface RedisStoreOptions {
  /** Replicas that must have an added job; 0: none. */
  readonly replicas: number
  /** Whether the tuning of src/jobs/bullmq is used, as in QueueStore. */
  readonly isTuned: boolean
  readonly report: Report
}

const CONNECT_TIMEOUT_MS = 2_000
const COMMAND_TIMEOUT_MS = 1_000
/** A Redis that was emptied sends no notification of the jobs it has lost. */
const POLL_SECONDS = 20
/** Milliseconds without data after which a connection is closed. A blocked worker receives nothing until it polls. */
const SILENT_PRODUCER_MS = 3_000
const SILENT_WORKER_MS = POLL_SECONDS * 1_000 + 5_000
/** The part of `maxmemory` from which new messages are refused. */
const FULL_SHARE = 0.8
/** Milliseconds; less than the second that a producer waits. */
const REPLICATED_WITHIN_MS = 500

/**
 * Producers have a connection of their own: it queues no command while Redis is unavailable and waits a second at most. The
 * connection of the workers waits without limit.
 */
export function openRedisStore(redisUrl: string, { replicas, isTuned, report }: RedisStoreOptions): QueueStore {
  const address = readRedisAddress(redisUrl)
  if (address === undefined) throw new Error('This is not an address of a Redis.')
  const producer = connectToRedis(address, { isPatient: false }).on('error', (error: Error) =>
    report('producer', error),
  )
  const firstContact = new Promise<void>((resolve) => {
    for (const event of ['ready', 'close', 'error']) producer.once(event, () => resolve())
  })
  const links = openLinks(producer)
  let worker: Redis | Cluster | undefined
  const servers = () => (producer instanceof Cluster ? producer.nodes('master') : [producer])

  return {
    kind: 'redis',
    isTuned,
    firstContact,
    backend: (name, options, kind) => {
      if (kind?.withBlockingConnection) {
        worker ??= connectToRedis(address, { isPatient: true }).on('error', (error: Error) => report('worker', error))
      }
      const connection = kind?.withBlockingConnection && worker ? worker : producer
      return createRedisBackend(name, { ...options, connection }, kind)
    },
    pollSeconds: POLL_SECONDS,
    isReady: () => producer.status === 'ready',
    summaries: redisSummaries(producer),
    nextJobs: redisNextJobs(producer),
    failedJobs: redisFailedJobs(producer),
    failedQueues: redisFailedQueues(producer),
    countFailedJobs: redisCountFailedJobs(producer),
    countQueues: undefined, // Redis knows the lengths of its lists
    // Keys with the same text in braces are on the same node of a cluster, as a script requires.
    prefixOf: (pod, queue) => (address.kind === 'cluster' ? `{${pod}-${queue}}` : pod),
    async safely(prefix, add) {
      if (replicas === 0) {
        await add()
        return
      }
      const link = await links.to(prefix)
      await add()
      const replicaCount = await link.redis.wait(replicas, REPLICATED_WITHIN_MS)
      // `wait` counts the writes of one connection, and another master may not have the job.
      if (!links.isUnbroken(link, await links.to(prefix))) throw new Error('Redis was replaced while it took the job.')
      if (replicaCount < replicas) throw new Error(`${replicaCount} of ${replicas} replicas of Redis have the job.`)
    },
    async hasFreeMemory() {
      const answers = await Promise.all(servers().map(serverHasFreeMemory))
      return !answers.includes(false)
    },
    async warnings() {
      const warnings = await Promise.all(servers().map(async (server) => warningsOf(server, replicas)))
      return [...new Set(warnings.flat())]
    },
    close: async () => {
      producer.disconnect()
      worker?.disconnect()
    },
  }
}

export function connectToRedis(address: RedisAddress, { isPatient }: { readonly isPatient: boolean }): Redis | Cluster {
  // The default backs off to many seconds: a worker would wait long after Redis is available again.
  const retryStrategy = (times: number) => Math.min(times * 100, 2_000)
  const options = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    // After a fail-over the former master still answers.
    reconnectOnError: (error) => error.message.includes('READONLY'),
    ...(isPatient ? { maxRetriesPerRequest: null } : { maxRetriesPerRequest: 0, commandTimeout: COMMAND_TIMEOUT_MS }),
  } satisfies RedisOptions
  if (address.kind === 'single') {
    return new Redis(address.address, { ...options, retryStrategy, enableOfflineQueue: isPatient })
  }
  const { tls, username, password } = address
  // After a fail-over, connections to a server that is frozen or cut off stay open.
  const silence = isPatient ? SILENT_WORKER_MS : SILENT_PRODUCER_MS
  const access = { ...(username && { username }), ...(password && { password }), ...(tls && { tls: {} }) }
  if (address.kind === 'sentinel') {
    const { sentinels, master, db, sentinelPassword } = address
    return new Redis({
      ...options,
      ...access,
      sentinels: [...sentinels],
      name: master,
      db,
      ...(sentinelPassword && { sentinelPassword }),
      ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
      sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
      sentinelRetryStrategy: retryStrategy,
      // The fail-over detector of the library is not used: it ends a connection permanently that is being opened at that moment.
      socketTimeout: silence,
      retryStrategy,
      enableOfflineQueue: isPatient,
    })
  }
  return new Cluster([...address.nodes], {
    redisOptions: { ...options, ...access, socketTimeout: silence },
    clusterRetryStrategy: retryStrategy,
    enableOfflineQueue: isPatient,
    slotsRefreshTimeout: COMMAND_TIMEOUT_MS,
    slotsRefreshInterval: SILENT_PRODUCER_MS,
    // Certificates are issued for the names of the nodes.
    ...(tls && { dnsLookup: (host, callback) => callback(null, host) }),
  })
}

/** The connection to the server with the keys of a queue, and the number of lost connections before it. */
interface Link {
  readonly redis: Redis
  readonly lost: number
}

function openLinks(producer: Redis | Cluster) {
  let closedConnections = 0
  const slots = new Map<string, number>()
  if (producer instanceof Redis) producer.on('close', () => (closedConnections += 1))

  async function nodeOf(cluster: Cluster, prefix: string): Promise<Redis> {
    const slot = slots.get(prefix) ?? Number(await cluster.cluster('KEYSLOT', prefix))
    slots.set(prefix, slot)
    const [key] = cluster.slots[slot] ?? []
    const node = cluster.nodes('master').find(({ options }) => `${options.host}:${options.port}` === key)
    if (node === undefined) throw new Error('No node of the Redis Cluster has these keys.')
    return node
  }

  return {
    async to(prefix: string): Promise<Link> {
      return producer instanceof Redis
        ? { redis: producer, lost: closedConnections }
        : { redis: await nodeOf(producer, prefix), lost: closedConnections }
    },
    /** A connection to a node of a cluster is not reopened but replaced. */
    isUnbroken: (before: Link, after: Link) => before.redis === after.redis && before.lost === after.lost,
  }
}

/**
 * Whether the server has free memory. A Redis at `maxmemory` cannot be emptied: the scripts that remove a job write before they delete.
 */
async function serverHasFreeMemory(server: Redis): Promise<boolean> {
  const memory = await server.info('memory')
  const counter = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0)
  const maxMemory = counter('maxmemory')
  if (maxMemory === 0 || !/^maxmemory_policy:noeviction/m.test(memory)) return true
  return counter('used_memory') < maxMemory * FULL_SHARE
}

async function warningsOf(server: Redis, replicas: number): Promise<readonly string[]> {
  const [persistence, memory, replication] = await Promise.all(
    ['persistence', 'memory', 'replication'].map((section) => server.info(section)),
  )
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory ?? '')?.[1]
  const connectedReplicas = Number(/^connected_slaves:(\d+)/m.exec(replication ?? '')?.[1] ?? 0)
  const warnings: string[] = []
  if (/^aof_enabled:0/m.test(persistence ?? '')) {
    warnings.push(
      'Redis keeps no append-only file: when it stops, messages that were accepted and not stored yet are lost. Set "appendonly yes" (best with "appendfsync always") in its configuration.',
    )
  }
  if (policy !== undefined && policy !== 'noeviction') {
    warnings.push(
      `Redis may evict waiting jobs when its memory is full: maxmemory-policy is ${policy}. Set it to noeviction.`,
    )
  }
  if (connectedReplicas < replicas) {
    warnings.push(
      `Redis has ${connectedReplicas} replicas, and a message is only accepted when ${replicas} have it (REDIS_REPLICAS): until there are more, other pods get 503 and retry later.`,
    )
  }
  return warnings
}
