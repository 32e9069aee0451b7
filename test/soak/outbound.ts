import { queueBackends } from '../support/queues/queue-backends.js'
import { runDeadPods } from './dead-pods.js'
import { runFanOut } from './fan-out.js'
import type { SoakOptions } from './main.js'

const PODS = 500
const FAN_OUT = { posts: 10, killIntervalMs: 2_000, threads: true, withinMs: 20 * 60_000 }
const DEAD_PODS = { silent: 200, refusing: 200, failing: 50, posts: 50, threads: true, withinMs: 10 * 60_000 }
const MAX_P95_MS = 2_000
const MAX_MEGABYTES = 512

/** A fan-out to `size` pods with faults, and one healthy pod among hundreds of dead ones; returns whether both succeed. */
export async function soakOutbound({ store: onlyStore, size = PODS }: SoakOptions): Promise<boolean> {
  const violations: string[] = []
  for (const { store } of queueBackends.filter(({ store }) => onlyStore === undefined || store === onlyStore)) {
    const report = (line: string) => console.log(`  ${line}`)
    console.log(`Posts for ${size} pods while workers are killed, with the queue in ${store}`)
    const { violations: lost, ...fanOut } = await runFanOut({ ...FAN_OUT, pods: size, store, report })
    report(JSON.stringify(fanOut))
    console.log(`One healthy pod among many dead ones, with the queue in ${store}`)
    const { violations: late, ...deadPods } = await runDeadPods({ ...DEAD_PODS, store, report })
    report(JSON.stringify(deadPods))
    violations.push(...lost, ...late)
    if (deadPods.p95 > MAX_P95_MS) violations.push(`deliveries to the healthy pod took ${deadPods.p95} ms (p95)`)
    if (deadPods.workerMegabytes > MAX_MEGABYTES) violations.push(`the worker used ${deadPods.workerMegabytes} MB`)
  }
  for (const violation of violations) console.log(`  WRONG: ${violation}`)
  return violations.length === 0
}
