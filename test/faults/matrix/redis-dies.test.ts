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

it.each([3_000, 20_000, 60_000])('F06: it dies, and is back after %i ms', async (away) => {
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

it('F09: the pod starts without it', async () => {
  const { assailed, ride, redis } = under
  await redis.kill()
  for (const kind of ['web', 'worker'] as const) {
    await Promise.all([0, 1].map((index) => assailed.killAndReplace(kind, index)))
  }
  const from = Date.now()
  let to = 0
  const { wrongs, answers, writes } = await ride.under({ ...LOAD, perSecond: 20 }, async (progress) => {
    await until('somebody was refused', 20_000, async () => {
      return progress.answers.length > 10 && progress.writes.length > 10
    })
    await pause(20_000)
    to = Date.now()
    await redis.start()
  })

  expect(wrongs).toEqual([])
  expectRefused(answers, from, to)
  expectUnaffected(writes)
})
