import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { expectRefused, type RedisPod, startRedisPod } from './redis-pod.js'
import { expectUnaffected } from './senders.js'

let under: RedisPod
beforeAll(async () => {
  under = await startRedisPod()
})
afterAll(() => under?.close())

it('F08: Redis is frozen', async () => {
  const { ride, redis } = under
  let [from, to] = [0, 0]
  const { wrongs, answers, writes } = await ride.under(
    { messages: 300, perSecond: 50, writesPerSecond: 4 },
    async (progress) => {
      await progress.untilAccepted(0.3)
      redis.signal('SIGSTOP')
      from = Date.now()
      await pause(60_000)
      to = Date.now()
      redis.signal('SIGCONT')
    },
  )

  expect(wrongs).toEqual([])
  expectRefused(answers, from, to)
  expectUnaffected(writes)
})
