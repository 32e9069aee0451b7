import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { listDeadLetters } from '../../../src/jobs/dead-letters.js'
import { until } from '../../soak/until.js'
import { type OwnRedis, redisProgram } from '../../support/redis-server.js'
import { type AssailedPod, startAssailedPod } from './assailed-pod.js'
import { openRide, type Ride } from './ride.js'
import { type Answer, publish, statusesIn } from './senders.js'

const LOAD = { messages: 300, perSecond: 50, writesPerSecond: 4 }

describe.skipIf(redisProgram() === undefined)('with the queue in Redis', () => {
  let assailed: AssailedPod
  let ride: Ride
  let redis: OwnRedis
  let client: Redis
  beforeAll(async () => {
    assailed = await startAssailedPod({ store: 'Redis' })
    ride = openRide(assailed)
    if (assailed.redis === undefined) throw new Error('There is a program, and so a server of our own.')
    redis = assailed.redis
    client = new Redis(redis.url)
    client.on('error', () => {})
  })
  afterAll(async () => {
    client?.disconnect()
    await assailed?.close()
  })
  afterEach(async () => expect(await listDeadLetters(assailed.pod)).toEqual([]))

  /** Of those who asked while it was surely away: all were asked to come again. */
  function expectRefused(answers: readonly Answer[], from: number, to: number): void {
    const refused = answers.filter(({ at, milliseconds }) => at > from && at + milliseconds < to)
    expect(statusesIn(refused)).toEqual([503])
    expect(refused.filter(({ retryAfter }) => retryAfter === null)).toEqual([])
    expect(statusesIn(answers)).not.toContain('late')
  }

  it.each([3_000, 12_000])('F06: it dies, and is back after %i ms', async (away) => {
    let [from, to] = [0, 0]
    const { wrongs, answers, writes } = await ride.under(LOAD, async (progress) => {
      await progress.untilAccepted(0.3)
      await redis.kill()
      from = Date.now()
      await pause(away)
      to = Date.now()
      await redis.start()
    })

    expect(wrongs).toEqual([])
    expectRefused(answers, from, to)
    expect(statusesIn(writes)).toEqual([200])
  })

  it('F07: it is emptied every few seconds', async () => {
    const load = { ...LOAD, messages: 500, sentAgain: true }
    const { wrongs, writes } = await ride.under(load, async (progress) => {
      for (const share of [0.1, 0.3, 0.5, 0.7, 1]) {
        await progress.untilAccepted(share)
        await client.flushall()
      }
    })

    expect(wrongs).toEqual([])
    expect(statusesIn(writes)).toEqual([200])
  })

  it('F08: it stands still', async () => {
    let [from, to] = [0, 0]
    const { wrongs, answers, writes } = await ride.under(LOAD, async (progress) => {
      await progress.untilAccepted(0.3)
      redis.signal('SIGSTOP')
      from = Date.now()
      await pause(20_000)
      to = Date.now()
      redis.signal('SIGCONT')
    })

    expect(wrongs).toEqual([])
    expectRefused(answers, from, to)
    expect(statusesIn(writes)).toEqual([200])
  })

  it('F09: the pod starts without it', async () => {
    await redis.kill()
    for (const kind of ['web', 'worker'] as const) {
      await Promise.all([0, 1].map((index) => assailed.killAndReplace(kind, index)))
    }
    const from = Date.now()
    let to = 0
    const { wrongs, answers, writes } = await ride.under(LOAD, async (progress) => {
      await until(
        'somebody was refused',
        20_000,
        async () => progress.answers.length > 10 && progress.writes.length > 10,
      )
      to = Date.now()
      await redis.start()
    })

    expect(wrongs).toEqual([])
    expectRefused(answers, from, to)
    expect(statusesIn(writes)).toEqual([200])
  })

  it('F10: it is full', async () => {
    for (const worker of assailed.processes.worker) worker.signal('SIGSTOP')
    const used = Number(/used_memory:([0-9]+)/.exec(await client.info('memory'))?.[1])
    await client.config('SET', 'maxmemory', `${used + 500_000}`)
    const { wrongs, answers } = await ride.under({ messages: 1_000, perSecond: 1_000 }, async (progress) => {
      await until('it is full', 30_000, async () => progress.answers.some(({ status }) => status === 503))
      for (const worker of assailed.processes.worker) worker.signal('SIGCONT')
      await progress.untilAccepted(1)
    })
    await client.config('SET', 'maxmemory', '0')

    expect(wrongs).toEqual([])
    expect(statusesIn(answers).toSorted()).toEqual([202, 503])
  })

  it('F36: the database is an older one, and the queue is not', async () => {
    const { database, pod, alice, processes } = assailed
    await database.kill()
    await database.save()
    await database.start()
    const write = async () => {
      const guids: string[] = []
      await until('ten posts are published', 30_000, async () => {
        const { guid } = await publish(assailed, alice)
        if (guid !== undefined) guids.push(guid)
        return guids.length >= 10
      })
      return guids
    }
    for (const worker of processes.worker) worker.signal('SIGSTOP')
    await write()
    await database.kill()
    await database.restore()
    await database.start()
    const guids = await write() // whose rows have the numbers of those that are gone
    for (const worker of processes.worker) worker.signal('SIGCONT')
    await assailed.settled()

    const told = await pod.db('outboundMessages').whereIn('guid', guids).pluck('guid')
    expect(told.toSorted()).toEqual(guids.toSorted())
    expect(await assailed.neighbours.missing()).toEqual([])
  })
})
