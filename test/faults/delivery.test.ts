import { describe, expect, it } from 'vitest'
import { runDeadPods } from '../soak/dead-pods.js'
import { runFanOut } from '../soak/fan-out.js'
import { queueBackends } from '../support/queues/queue-backends.js'

describe.each(queueBackends)('outbound deliveries, with the queue in $store', ({ store }) => {
  it('arrive at every pod and in order while processes are killed', async () => {
    const { wrongs, killed } = await runFanOut({
      store,
      pods: 40,
      posts: 5,
      killEveryMs: 300,
      threads: false,
      withinMs: 90_000,
    })

    expect(wrongs).toEqual([])
    expect(killed).toBeGreaterThan(0)
  }, 150_000)

  it('arrive at a healthy pod among many unreachable ones, and at those once they respond again', async () => {
    const { wrongs } = await runDeadPods({
      store,
      silent: 20,
      refusing: 20,
      failing: 5,
      posts: 5,
      threads: false,
      withinMs: 90_000,
    })

    expect(wrongs).toEqual([])
  }, 150_000)
})
