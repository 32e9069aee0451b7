import { expect, it } from 'vitest'
import { BACKGROUND_LIMITS } from '../../src/jobs/inbound/limits.js'
import { openLoadPause } from '../../src/jobs/inbound/pause-under-load.js'
import { QueueUnavailable } from '../../src/jobs/queues/queue-unavailable.js'

const counts = (waiting: number) => ({ waiting, active: 0, delayed: 0, failed: 0 })

it('long work continues at once while few received messages wait, and the queue is not counted each time', async () => {
  let looks = 0
  const load = openLoadPause({
    counts: async () => {
      looks += 1
      return counts(BACKGROUND_LIMITS.pauseAboveJobs)
    },
  })
  await load.wait()
  await load.wait()
  expect(looks).toBe(1)
})

it('long work waits while many received messages wait, until it is stopped', async () => {
  const stop = new AbortController()
  const load = openLoadPause({
    counts: async () => {
      setImmediate(() => stop.abort())
      return counts(BACKGROUND_LIMITS.pauseAboveJobs + 1)
    },
  })
  await expect(load.wait(stop.signal)).rejects.toMatchObject({ name: 'AbortError' })
})

it('an unavailable queue stops no long work', async () => {
  const load = openLoadPause({ counts: async () => Promise.reject(new QueueUnavailable('away')) })
  await load.wait()
})

it('long work with a share of the time rests after each part', async () => {
  const stop = new AbortController()
  const load = openLoadPause({ counts: async () => counts(0) }, 1e-9)
  setImmediate(() => stop.abort())
  await expect(load.wait(stop.signal)).rejects.toMatchObject({ name: 'AbortError' })
})
