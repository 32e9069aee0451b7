import { queueBackends } from '../support/queues/queue-backends.js'
import { runDeadPods } from './dead-pods.js'
import { runFanOut } from './fan-out.js'
import type { SoakOptions } from './main.js'

const PODS = 500
const FAN_OUT = { posts: 10, killIntervalMs: 2_000, threads: true, withinMs: 20 * 60_000 }
const DEAD_PODS = { silent: 200, refusing: 200, failing: 50, posts: 50, threads: true, withinMs: 10 * 60_000 }
const LATEST_MS = 2_000
const MAX_MEGABYTES = 512

/** A fan-out to `size` pods with faults, and one healthy pod among hundreds of dead ones; returns whether both succeed. */
export async function soakOutbound({ store: only, size = PODS }: SoakOptions): Promise<boolean> {
  const wrongs: string[] = []
  for (const { store } of queueBackends.filter(({ store }) => only === undefined || store === only)) {
    const report = (line: string) => console.log(`  ${line}`)
    console.log(`Posts for ${size} pods while workers are killed, with the queue in ${store}`)
    const { wrongs: lost, ...fanOut } = await runFanOut({ ...FAN_OUT, pods: size, store, report })
    report(JSON.stringify(fanOut))
    console.log(`One pod that is well among many that are not, with the queue in ${store}`)
    const { wrongs: late, ...deadPods } = await runDeadPods({ ...DEAD_PODS, store, report })
    report(JSON.stringify(deadPods))
    wrongs.push(...lost, ...late)
    if (deadPods.p95 > LATEST_MS) wrongs.push(`the pod that is well had to wait for ${deadPods.p95} ms`)
    if (deadPods.workerMegabytes > MAX_MEGABYTES) wrongs.push(`the worker took ${deadPods.workerMegabytes} MB`)
  }
  for (const wrong of wrongs) console.log(`  WRONG: ${wrong}`)
  return wrongs.length === 0
}
