import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../../soak/until.js'
import { expectRefused, type RedisPod, startRedisPod } from './redis-pod.js'
import { expectUnaffected } from './senders.js'

const LOAD = { messages: 300, perSecond: 50, writesPerSecond: 4 }

let under: RedisPod
beforeAll(async () => {
  under = await startRedisPod()
})
afterAll(() => under?.close())

/** Shorter and longer than the lock of an active job, which is 30 s; nothing waits longer than that. */
const AWAY = [3_000, 20_000, 35_000] as const

it.each(AWAY)('F06: Redis is killed, and restarts after %i ms', async (away) => {
  const { ride, redis } = under
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
  expectUnaffected(writes)
})

it('F06: Redis is killed, and has persisted nothing', async () => {
  const { ride, redis } = under
  // Only messages that no worker had started are lost with it.
  const load = { ...LOAD, beforeSentAgain: async () => {} }
  const { wrongs, writes } = await ride.under(load, async (progress) => {
    for (const share of [0.3, 0.6]) {
      await progress.untilAccepted(share)
      await redis.lose()
      await pause(3_000)
      await redis.start()
    }
  })

  expect(wrongs).toEqual([])
  expectUnaffected(writes)
})

/** By then all processes reconnect at the longest interval, two seconds. */
const ABSENT = 20_000

it('F09: the pod starts without Redis', async () => {
  const { podUnderFaults, ride, redis } = under
  await redis.kill()
  for (const kind of ['web', 'worker'] as const) {
    await Promise.all([0, 1].map((index) => podUnderFaults.killAndReplace(kind, index)))
  }
  const from = Date.now()
  let to = 0
  const { wrongs, answers, writes } = await ride.under({ ...LOAD, perSecond: 20 }, async (progress) => {
    await until('a request was refused', 20_000, async () => {
      return progress.answers.length > 10 && progress.writes.length > 10
    })
    await pause(ABSENT)
    to = Date.now()
    await redis.start()
  })

  expect(wrongs).toEqual([])
  expectRefused(answers, from, to)
  expectUnaffected(writes)
})
