import { domainToASCII } from 'node:url'
import type { Knex } from 'knex'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import type { PodHost } from '../../persistence/models/remote-pod.js'
import { addPodActivity, LATENCY_BOUNDS, type PodActivity } from '../../persistence/operations/pod-activity.js'
import type { Services } from '../../services/services.js'

/** Hosts of invented senders must not fill the memory between two writes. */
const MAX_PODS = 10_000

type Counts = { -readonly [Name in keyof Omit<PodActivity, keyof PodHost | 'latencies'>]: number } & {
  readonly latencies: number[]
}

/** Activity that this process has not written yet, by host. */
const pendingByDatabase = stateByOwner<Knex, Map<string, Counts>>()

function pendingOf(db: Knex): Map<string, Counts> {
  return pendingByDatabase(db, () => new Map())
}

/** Undefined: too many pods since the last write. */
function countsOf(db: Knex, host: string): Counts | undefined {
  const pending = pendingOf(db)
  const pendingActivity = pending.get(host)
  if (pendingActivity !== undefined || pending.size >= MAX_PODS) return pendingActivity
  const counts: Counts = { delivered: 0, failed: 0, received: 0, refused: 0, latencies: LATENCY_BOUNDS.map(() => 0) }
  pending.set(host, counts)
  return counts
}

/** Counts a delivery to a pod. `host` has the port if it is not 443, as in addresses. */
export function countDelivery(db: Knex, host: string, { isDelivered, ms }: { isDelivered: boolean; ms: number }): void {
  const counts = countsOf(db, host)
  if (counts === undefined) return
  counts[isDelivered ? 'delivered' : 'failed'] += 1
  const bucket = LATENCY_BOUNDS.findIndex((bound) => ms <= bound)
  counts.latencies[bucket] = (counts.latencies[bucket] ?? 0) + 1
}

/** Counts a message from a pod. */
export function countReceived(db: Knex, host: string, end: 'received' | 'refused'): void {
  const counts = countsOf(db, host)
  if (counts !== undefined) counts[end] += 1
}

const HOST = /^(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?$/

/** Writes the counts since the last write. After an error they are written later. */
export async function savePodActivity({ db }: Pick<Services, 'db'>): Promise<void> {
  const pending = pendingOf(db)
  if (pending.size === 0) return
  const countsOfHosts = [...pending]
  pending.clear()
  try {
    await addPodActivity(db, countsOfHosts.map(rowOf))
  } catch (error) {
    for (const [host, counts] of countsOfHosts) addTo(countsOf(db, host), counts)
    throw error
  }
}

function rowOf([place, counts]: readonly [string, Counts]): PodActivity {
  const [, host = place, port = '443'] = HOST.exec(place) ?? []
  return { host: host.startsWith('[') ? host : domainToASCII(host), port: Number(port), ...counts }
}

function addTo(counts: Counts | undefined, more: Counts): void {
  if (counts === undefined) return
  for (const name of ['delivered', 'failed', 'received', 'refused'] as const) counts[name] += more[name]
  more.latencies.forEach((count, bucket) => {
    counts.latencies[bucket] = (counts.latencies[bucket] ?? 0) + count
  })
}
