import { describe, expect, it } from 'vitest'
import { runDeadPods } from '../../soak/dead-pods.js'
import { runFanOut } from '../../soak/fan-out.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('outbound deliveries, with the queue in $store', ({ store }) => {
  it('arrive at every pod and in order while processes are killed', async () => {
    const { violations, killed } = await runFanOut({
      store,
      pods: 40,
      posts: 5,
      killIntervalMs: 300,
      kills: 4, // a worker takes longer to start than to deliver
      threads: false,
      withinMs: 120_000,
    })

    expect(violations).toEqual([])
    expect(killed).toBeGreaterThan(0)
  }, 300_000)

  it('arrive at a healthy pod among many unreachable ones, and at those once they respond again', async () => {
    const { violations } = await runDeadPods({
      store,
      silent: 6,
      refusing: 6,
      failing: 3,
      posts: 5,
      threads: false,
      withinMs: 120_000,
    })

    expect(violations).toEqual([])
  }, 300_000)
})
