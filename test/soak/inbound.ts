import { queueBackends } from '../support/queues/queue-backends.js'
import { runBurst } from './burst.js'
import type { SoakOptions } from './main.js'

const SIEGE = { people: 50, lifeMs: 1_000, threads: true, withinMs: 20 * 60_000 }

/** A burst of full size on each back end; prints the violations, and returns whether there are none. */
export async function soakInbound({ seed, store: only, size = 20_000 }: SoakOptions): Promise<boolean> {
  let isWell = true
  for (const { store } of queueBackends.filter((backend) => only === undefined || backend.store === only)) {
    console.log(`A burst with the queue in ${store}, seed ${seed}`)
    const { wrongs, ...figures } = await runBurst({
      ...SIEGE,
      store,
      seed,
      messages: size,
      report: (line) => console.log(`  ${line}`),
    })
    console.log(`  ${JSON.stringify(figures)}`)
    for (const wrong of wrongs) console.log(`  WRONG: ${wrong}`)
    isWell &&= wrongs.length === 0
  }
  return isWell
}
