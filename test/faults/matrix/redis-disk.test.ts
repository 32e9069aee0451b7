import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../../soak/until.js'
import { openSmallDisk, type SmallDisk } from '../../support/files/small-disk.js'
import { type RedisPod, startRedisPod } from './redis-pod.js'
import { expectUnaffected, statusesIn } from './senders.js'

const MEGABYTES = 32

let disk: SmallDisk | undefined
let redisPod: RedisPod | undefined
beforeAll(async () => {
  disk = await openSmallDisk(MEGABYTES)
  // A Redis with fsync before each reply ends when it cannot write: that is F06.
  const redisSettings = ['--appendfsync', 'everysec']
  if (disk !== undefined) redisPod = await startRedisPod({ folders: { redis: disk.folder }, redisSettings })
})
afterAll(async () => {
  await redisPod?.close()
  await disk?.close()
})

it('F11: the disk of Redis is full', async ({ skip }) => {
  if (disk === undefined || redisPod === undefined) return skip('this user may not mount a small file system')
  const { fill, clear } = disk
  const { violations, responses, writes } = await redisPod.scenario.run(
    { messages: 300, perSecond: 20, writesPerSecond: 4 },
    async (progress) => {
      await progress.untilAccepted(0.2)
      await fill()
      await until('a request is refused', 30_000, async () => progress.responses.some(({ status }) => status === 503))
      await pause(10_000)
      await clear()
      await progress.untilAccepted(1)
    },
  )

  expect(violations).toEqual([])
  expect(statusesIn(responses).toSorted()).toEqual([202, 503])
  expect(responses.filter(({ status, retryAfter }) => status === 503 && retryAfter === null)).toEqual([])
  expectUnaffected(writes)
})
