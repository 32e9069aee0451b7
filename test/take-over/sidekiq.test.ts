import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { findSidekiqJobs, requireIdleSidekiq } from '../../src/take-over/sidekiq.js'
import { redisProgram, startTestRedis } from '../support/queues/redis-server.js'

describe.runIf(redisProgram() !== undefined)('the jobs of the old pod', () => {
  it('are counted by class, and hold up the switch unless they are dropped', async () => {
    const server = await startTestRedis()
    const redis = new Redis(server.url)
    try {
      expect(await requireIdleSidekiq(server.url, { mayLoseJobs: false })).toEqual({
        processes: 0,
        waiting: {},
        dead: 0,
      })
      const job = (name: string) => JSON.stringify({ class: `Workers::${name}`, args: ['private words'], jid: 'a' })
      await redis.rpush('queue:urgent', job('ReceiveLocal'), job('Mail::Liked'))
      await redis.zadd('schedule', 1, job('SendPublic'))
      await redis.zadd('dead', 1, job('SendPublic'))
      expect(await findSidekiqJobs(server.url)).toEqual({
        processes: 0,
        waiting: { ReceiveLocal: 1, 'Mail::Liked': 1, SendPublic: 1 },
        dead: 1,
      })
      const refused = requireIdleSidekiq(server.url, { mayLoseJobs: false })
      await expect(refused).rejects.toThrow('1 ReceiveLocal, 1 SendPublic')
      expect((await requireIdleSidekiq(server.url, { mayLoseJobs: true })).waiting).toHaveProperty('ReceiveLocal', 1)
      await redis.sadd('processes', 'host:1:a')
      await redis.hset('host:1:a', 'beat', String(Date.now() / 1_000))
      await expect(requireIdleSidekiq(server.url, { mayLoseJobs: true })).rejects.toThrow('A process of Sidekiq runs')
    } finally {
      redis.disconnect()
      await server.stop()
    }
  })
})
