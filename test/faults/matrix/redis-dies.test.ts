import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../../soak/until.js'
import { expectRefused, type RedisPod, startRedisPod } from './redis-pod.js'
import { expectUnaffected } from './senders.js'

const LOAD = { messages: 300, perSecond: 50, writesPerSecond: 4 }

let redisPod: RedisPod
beforeAll(async () => {
  redisPod = await startRedisPod()
})
afterAll(() => redisPod?.close())

/** Durations of the outage, shorter and longer than the lock of an active job, which is 30 s. */
const OUTAGES_MS = [3_000, 20_000, 35_000] as const

it.each(OUTAGES_MS)('F06: Redis is killed, and restarts after %i ms', async (outageMs) => {
  const { scenario, redis } = redisPod
  let [from, to] = [0, 0]
  const { violations, responses, writes } = await scenario.run(LOAD, async (progress) => {
    await progress.untilAccepted(0.3)
    await redis.kill()
    from = Date.now()
    await pause(outageMs)
    to = Date.now()
    await redis.start()
  })

  expect(violations).toEqual([])
  expectRefused(responses, from, to)
  expectUnaffected(writes)
})

it('F06: Redis is killed, and has persisted nothing', async () => {
  const { scenario, redis } = redisPod
  // Only messages that no worker had started are lost with it.
  const load = { ...LOAD, beforeResend: async () => {} }
  const { violations, writes } = await scenario.run(load, async (progress) => {
    for (const share of [0.3, 0.6]) {
      await progress.untilAccepted(share)
      await redis.lose()
      await pause(3_000)
      await redis.start()
    }
  })

  expect(violations).toEqual([])
  expectUnaffected(writes)
})

/** Long enough for all processes to reconnect at the longest interval, two seconds. */
const ABSENT_MS = 20_000

it('F09: the pod starts without Redis', async () => {
  const { podUnderFaults, scenario, redis } = redisPod
  await redis.kill()
  for (const kind of ['web', 'worker'] as const) {
    await Promise.all([0, 1].map((index) => podUnderFaults.killAndReplace(kind, index)))
  }
  const from = Date.now()
  let to = 0
  const { violations, responses, writes } = await scenario.run({ ...LOAD, perSecond: 20 }, async (progress) => {
    await until('some requests were sent', 20_000, async () => {
      return progress.responses.length > 10 && progress.writes.length > 10
    })
    await pause(ABSENT_MS)
    to = Date.now()
    await redis.start()
  })

  expect(violations).toEqual([])
  expectRefused(responses, from, to)
  expectUnaffected(writes)
})
