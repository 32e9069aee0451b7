import { existsSync } from 'node:fs'
import { queueBackends } from '../support/queues/queue-backends.js'
import type { SoakOptions } from './main.js'
import { startMixedLoadPod } from './mixed-load-pod.js'
import { live } from './mixed-traffic.js'
import type { Requests } from './persistent-client.js'
import { startRemotePods } from './remote-pods.js'
import { prognosisOf, tableOf } from './trend.js'

const MINUTES = 8
/** Messages of one burst. */
const MESSAGES = 600

/**
 * A day of a pod in minutes: bursts from other pods with rests between them, people with clients who read, write, upload and
 * receive events, slow pods and unreachable pods. Reports whether the pod performs at the end as it did after the warm-up,
 * and whether every acknowledged message is stored once.
 */
export async function soakMixed({ seed, store: onlyStore, size, minutes = MINUTES }: SoakOptions): Promise<boolean> {
  const { store } = queueBackends.findLast((backend) => onlyStore === undefined || backend.store === onlyStore) ?? {}
  if (store === undefined) throw new Error(`There is no ${onlyStore} here.`)
  if (!existsSync('/proc/self/fd')) throw new Error('This looks into /proc, which only Linux has.')
  const report = (line: string) => console.log(`  ${line}`)
  console.log(`${minutes} minutes of mixed load with the queue in ${store}, seed ${seed}`)
  await using mixedLoadPod = await startMixedLoadPod(store)
  await using remotePods = await startRemotePods(mixedLoadPod.pod, mixedLoadPod.localUsers)
  const measure = { seed, minutes, messages: size ?? MESSAGES, report }
  const { signs, lags, requests, heard, wrongs } = await live(mixedLoadPod, remotePods, measure)

  const findings = prognosisOf(signs)
  const grown = findings.flatMap(({ name, before, after, growth }) => {
    if (growth === 'not known') return [`${name}: not measured often enough; this takes more minutes`]
    return growth === 'too much' ? [`${name}: ${before.toFixed(1)} has become ${after.toFixed(1)}`] : []
  })
  console.log(tableOf(findings))
  report(`seconds from the last message of a burst to the end of all work: ${lags.map(inSeconds).join(' ')}`)
  report(`requests of clients: ${lineOf(requests)}; events that they heard: ${heard}`)
  const all = [...wrongs, ...requests.failed, ...grown]
  for (const wrong of all) report(`WRONG: ${wrong}`)
  return all.length === 0
}

function inSeconds(milliseconds: number): string {
  return (milliseconds / 1_000).toFixed(1)
}

function lineOf({ answered, askedAgain, failed, milliseconds }: Requests): string {
  const sorted = milliseconds.toSorted((one, other) => one - other)
  const p = (part: number) => Math.round(sorted[Math.floor(sorted.length * part)] ?? Number.NaN)
  const answers = `${answered} answered, in ${p(0.5)} ms (p50) and ${p(0.95)} ms (p95)`
  return `${answers}, ${askedAgain} asked to come again, ${failed.length} failed`
}
