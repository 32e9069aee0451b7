import { existsSync } from 'node:fs'
import { queueBackends } from '../support/queues/queue-backends.js'
import type { SoakOptions } from './main.js'
import { startMixedLoadPod } from './mixed-load-pod.js'
import { runMixedLoad } from './mixed-traffic.js'
import type { Requests } from './persistent-client.js'
import { startRemotePods } from './remote-pods.js'
import { analyseTrends, tableOf } from './trend.js'

const MINUTES = 8
/** Messages of one burst. */
const MESSAGES = 600

/**
 * Mixed load: bursts from other pods with pauses, clients that read, write, upload and receive events, slow pods and unreachable
 * pods. Returns whether the memory and the connections of the pod do not grow, and every acknowledged message is stored once.
 */
export async function soakMixed({ seed, store: onlyStore, size, minutes = MINUTES }: SoakOptions): Promise<boolean> {
  const { store } = queueBackends.findLast((backend) => onlyStore === undefined || backend.store === onlyStore) ?? {}
  if (store === undefined) throw new Error(`${onlyStore} is not available.`)
  if (!existsSync('/proc/self/fd')) throw new Error('This run reads /proc, which only Linux has.')
  const report = (line: string) => console.log(`  ${line}`)
  console.log(`${minutes} minutes of mixed load with the queue in ${store}, seed ${seed}`)
  await using mixedLoadPod = await startMixedLoadPod(store)
  await using remotePods = await startRemotePods(mixedLoadPod.pod, mixedLoadPod.localUsers)
  const measure = { seed, minutes, messages: size ?? MESSAGES, report }
  const { samples, lags, requests, receivedEvents, violations } = await runMixedLoad(mixedLoadPod, remotePods, measure)

  const findings = analyseTrends(samples)
  const growthViolations = findings.flatMap(({ name, before, after, growth }) => {
    if (growth === 'not known') return [`${name}: too few measurements; use more --minutes`]
    return growth === 'too much' ? [`${name}: ${before.toFixed(1)} has grown to ${after.toFixed(1)}`] : []
  })
  console.log(tableOf(findings))
  report(`seconds from the last message of a burst to the end of all work: ${lags.map(toSeconds).join(' ')}`)
  report(`requests of clients: ${lineOf(requests)}; received events: ${receivedEvents}`)
  const all = [...violations, ...requests.failed, ...growthViolations]
  for (const violation of all) report(`WRONG: ${violation}`)
  return all.length === 0
}

function toSeconds(milliseconds: number): string {
  return (milliseconds / 1_000).toFixed(1)
}

function lineOf({ succeeded, retried, failed, milliseconds }: Requests): string {
  const sorted = milliseconds.toSorted((one, other) => one - other)
  const percentile = (fraction: number) => Math.round(sorted[Math.floor(sorted.length * fraction)] ?? Number.NaN)
  const successes = `${succeeded} succeeded, in ${percentile(0.5)} ms (p50) and ${percentile(0.95)} ms (p95)`
  return `${successes}, ${retried} retried, ${failed.length} failed`
}
