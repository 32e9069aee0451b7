import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { expectRefused, type RedisPod, startRedisPod } from './redis-pod.js'
import { expectUnaffected } from './senders.js'

let redisPod: RedisPod
beforeAll(async () => {
  redisPod = await startRedisPod()
})
afterAll(() => redisPod?.close())

it('F08: Redis is frozen', async () => {
  const { scenario, redis } = redisPod
  let [from, to] = [0, 0]
  const { violations, responses, writes } = await scenario.run(
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

  expect(violations).toEqual([])
  expectRefused(responses, from, to)
  expectUnaffected(writes)
})
