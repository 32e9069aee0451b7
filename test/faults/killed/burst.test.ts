import { expect, it } from 'vitest'
import { runBurst } from '../../soak/burst.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

it.each(queueBackends)(
  'every message of a burst has one effect while processes are killed, with the queue in $store',
  async ({ store }) => {
    const seed = Date.now() % 1_000_000
    const { violations, killed } = await runBurst({
      store,
      seed,
      messages: 400,
      people: 10,
      lifeMs: 700,
      kills: 4, // a worker takes longer to start than to store all messages
      threads: false,
      withinMs: 120_000,
    })

    expect(violations, `seed ${seed}`).toEqual([])
    expect(killed).toBeGreaterThan(0)
  },
  300_000,
)
