import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { openJobQueues } from '../../src/jobs/queues/job-queues.js'
import { QueueUnavailable } from '../../src/jobs/queues/queue-unavailable.js'
import { type RedisCluster, startRedisCluster } from '../support/queues/redis-cluster.js'
import { startWatchedRedis, type WatchedRedis } from '../support/queues/redis-sentinel.js'
import { type OwnRedis, redisProgram } from '../support/queues/redis-server.js'

const greet = defineJob<{ name: string }>()('notify', 'greet', retriedForHours)
const receive = defineJob<{ name: string }>()('inbound', 'receive', retriedForHours)
const timing = { concurrency: 4, lockMs: 5_000, stalledCheckMs: 1_000, backoff: () => 100 }
const LATER = { timeout: 40_000, interval: 50 }

type Jobs = Awaited<ReturnType<typeof openJobQueues>>
const log = pino({ level: 'silent' })
const open = (redisUrl: string, redisReplicas: number, prefix: string) =>
  openJobQueues({ redisUrl, redisReplicas, databaseUrl: 'postgres://nobody@127.0.0.1:1/none', log, prefix })

/** Runs jobs of both queues until all of these names were processed. */
async function untilDone(jobs: Jobs, names: readonly string[]): Promise<void> {
  const seen = new Set<string>()
  const workers = (['notify', 'inbound'] as const).map((queue) =>
    jobs.serve(queue, async (job) => void seen.add(String(job.data.name)), timing),
  )
  await vi.waitFor(() => expect([...seen].toSorted()).toEqual([...names].toSorted()), LATER)
  await Promise.all(workers.map((worker) => worker.close()))
}

const untilAcknowledged = (jobs: Jobs, name: string) => vi.waitFor(() => jobs.add(receive, { name }), LATER)

describe.skipIf(redisProgram() === undefined)('the queue in a Redis Cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startRedisCluster({ replicated: true })
  })
  afterAll(() => cluster?.stop())

  it('accepts jobs of all queues and runs each once', async () => {
    const jobs = await open(cluster.url, 1, 'whole')
    try {
      await jobs.add(greet, { name: 'Alice' })
      await jobs.add(receive, { name: 'Bob' })
      await jobs.addAll(greet, [{ name: 'Carol' }, { name: 'Dave' }])
      expect(await jobs.counts('notify')).toMatchObject({ waiting: 3 })
      expect(await jobs.warnings()).toEqual([])
      await untilDone(jobs, ['Alice', 'Bob', 'Carol', 'Dave'])
      expect(await jobs.counts('notify')).toMatchObject({ waiting: 0, active: 0, failed: 0 })
    } finally {
      await jobs.close()
    }
  })

  it('rejects a job that too few replicas acknowledge', async () => {
    const jobs = await open(cluster.url, 2, 'few')
    try {
      await expect(jobs.add(receive, { name: 'Alice' })).rejects.toThrow(QueueUnavailable)
      expect(await jobs.warnings()).toEqual([expect.stringContaining('REDIS_REPLICAS')])
    } finally {
      await jobs.close()
    }
  })

  it('works again after the replica of a failed node was promoted', async () => {
    const jobs = await open(cluster.url, 0, 'gone')
    try {
      await untilAcknowledged(jobs, 'Alice')
      await (await masterOf('{gone-inbound}')).kill()
      await untilAcknowledged(jobs, 'Bob')
      await untilDone(jobs, ['Alice', 'Bob'])
    } finally {
      await jobs.close()
    }
  }, 120_000)

  async function masterOf(tag: string): Promise<OwnRedis> {
    for (const master of cluster.masters) {
      const client = new Redis(master.url)
      const keys = await client.keys(`${tag.replace(/[{}]/g, '?')}*`).finally(() => client.disconnect())
      if (keys.length > 0) return master
    }
    throw new Error('No node serves these keys.')
  }
})

describe.skipIf(redisProgram() === undefined)('the queue in a Redis with Sentinels', () => {
  it('works with the promoted replica when the master is frozen', async () => {
    const frozen = await startWatchedRedis()
    const jobs = await open(frozen.url, 1, 'frozen')
    try {
      await untilAcknowledged(jobs, 'Alice')
      frozen.servers[0]?.signal('SIGSTOP')
      await expect(jobs.add(receive, { name: 'Nobody' })).rejects.toThrow(QueueUnavailable)
      await untilAcknowledged(jobs, 'Bob')
      await untilDone(jobs, ['Alice', 'Bob'])
    } finally {
      await jobs.close()
      await frozen.stop()
    }
  }, 120_000)

  let watched: WatchedRedis
  beforeAll(async () => {
    watched = await startWatchedRedis()
  })
  afterAll(() => watched?.stop())

  it('keeps acknowledged jobs when the master is killed and its replicas were behind', async () => {
    const [master, ...replicas] = watched.servers as [OwnRedis, ...OwnRedis[]] // there is always a master
    const jobs = await open(watched.url, 1, 'safe')
    const careless = await open(watched.url, 0, 'careless')
    const careful = await open(watched.url, replicas.length, 'safe')
    try {
      await careless.add(receive, { name: 'Alice' })
      await untilAcknowledged(careful, 'Alice') // any replica that is promoted later has everything up to here
      for (const replica of replicas) replica.signal('SIGSTOP')
      await expect(jobs.add(receive, { name: 'Bob' })).rejects.toThrow(QueueUnavailable)
      await careless.add(receive, { name: 'Bob' })
      await master.kill()
      for (const replica of replicas) await replica.crash() // commands in transit to the replicas are lost

      const before = Number(new URL(master.url).port)
      await vi.waitFor(async () => expect(await watched.masterPort()).not.toBe(before), LATER)
      await untilAcknowledged(jobs, 'Carol')
      await untilDone(jobs, ['Alice', 'Carol'])
      // A job acknowledged without waiting for replicas is lost: this is the reason to wait.
      await untilAcknowledged(careless, 'Carol')
      await untilDone(careless, ['Alice', 'Carol'])
    } finally {
      for (const opened of [jobs, careless, careful]) await opened.close()
    }
  }, 120_000)
})
