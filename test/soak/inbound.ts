import { queueBackends } from '../support/queues/queue-backends.js'
import { runBurst } from './burst.js'
import type { SoakOptions } from './main.js'

const BURST = { people: 50, lifeMs: 1_000, threads: true, withinMs: 20 * 60_000 }

/** A burst of full size on each back end; prints the violations, and returns whether there are none. */
export async function soakInbound({ seed, store: onlyStore, size = 20_000 }: SoakOptions): Promise<boolean> {
  let isOk = true
  for (const { store } of queueBackends.filter((backend) => onlyStore === undefined || backend.store === onlyStore)) {
    console.log(`A burst with the queue in ${store}, seed ${seed}`)
    const { violations, ...figures } = await runBurst({
      ...BURST,
      store,
      seed,
      messages: size,
      report: (line) => console.log(`  ${line}`),
    })
    console.log(`  ${JSON.stringify(figures)}`)
    for (const violation of violations) console.log(`  WRONG: ${violation}`)
    isOk &&= violations.length === 0
  }
  return isOk
}
