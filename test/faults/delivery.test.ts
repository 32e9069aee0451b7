import { describe, expect, it } from 'vitest'
import { runDeadPods } from '../soak/dead-pods.js'
import { runFanOut } from '../soak/fan-out.js'
import { queueBackends } from '../support/queue-backends.js'

describe.each(queueBackends)('what goes out, with the queue in $store', ({ store }) => {
  it('arrives everywhere and in order, whoever is killed meanwhile', async () => {
    const { wrongs, killed } = await runFanOut({
      store,
      pods: 40,
      posts: 5,
      killEveryMs: 1_500,
      threads: false,
      withinMs: 90_000,
    })

    expect(wrongs).toEqual([])
    expect(killed).toBeGreaterThan(0)
  }, 150_000)

  it('arrives at a pod that is well among many that are not, and at those when they come back', async () => {
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
