import { addPodBytes } from '../../persistence/inbound/pod-bytes.js'
import type { Pod } from '../../pod/pod.js'
import { splitAddress } from '../../protocol/address.js'
import { ENTITY_TYPES, type ReceivedEntity } from '../../protocol/entities/registry.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import { stateByOwner } from '../../throttling/state-by-owner.js'
import type { Arrival, StepResult } from './batch.js'

const FLUSH_EVERY_MS = 5_000
const DAY_MS = 24 * 3_600 * 1_000

interface DailyUsage {
  /** Bytes by host that are not in the database yet. */
  pending: Map<string, number>
  flushedAt: number
  /** Hosts that have reached the limit of this day. */
  exhaustedHosts: Set<string>
  day: number
}

/** One entry for each open pod of this process. */
const usageByPod = stateByOwner<Pod['jobs'], DailyUsage>()

function usageOf({ jobs, now }: Pick<Pod, 'jobs' | 'now'>): DailyUsage {
  const time = now().getTime()
  const day = Math.floor(time / DAY_MS)
  const usage = usageByPod(jobs, () => ({ pending: new Map(), flushedAt: time, exhaustedHosts: new Set(), day }))
  if (usage.day !== day) Object.assign(usage, { exhaustedHosts: new Set(), day })
  return usage
}

/** Types that may end something are stored without limit: the loss of one would leave two pods with different states. */
function isExempt({ type }: ReceivedEntity): boolean {
  return ENTITY_TYPES[type].ends !== 'never'
}

/** Ignores entities from pods that have reached their limit of bytes for this day. */
export function ignoreOverDailyBytes<Each extends Arrival>(
  pod: Pick<Pod, 'jobs' | 'now'>,
  arrivals: readonly Each[],
): StepResult<Each> {
  const { exhaustedHosts: hosts } = usageOf(pod)
  if (hosts.size === 0) return { ready: arrivals, ignored: [], waiting: [], rejected: [] }
  const isOverLimit = ({ signer, entity }: Each) => hosts.has(hostOf(signer.address)) && !isExempt(entity)
  return {
    ready: arrivals.filter((arrival) => !isOverLimit(arrival)),
    ignored: arrivals.filter(isOverLimit).map((arrival) => {
      return {
        message: arrival.message,
        arrival,
        reason: `the pod of ${arrival.signer.address} has reached its daily byte limit`,
      }
    }),
    waiting: [],
    rejected: [],
  }
}

/**
 * Counts the bytes of stored messages for the pods of their signers. Each process writes its sums every five seconds, so a pod may
 * exceed the limit by the bytes of that time.
 */
export async function countDailyBytes(
  pod: Pick<Pod, 'jobs' | 'db' | 'now' | 'config' | 'log'>,
  stored: readonly Pick<Arrival, 'signer' | 'message'>[],
): Promise<void> {
  const limit = pod.config.podBytesPerDay
  if (limit === 0) return
  const usage = usageOf(pod)
  for (const { signer, message } of stored) {
    const host = hostOf(signer.address)
    usage.pending.set(host, (usage.pending.get(host) ?? 0) + envelopeBytes(message.envelope))
  }
  if (pod.now().getTime() - usage.flushedAt < FLUSH_EVERY_MS) return
  const { pending, exhaustedHosts } = usage // the day may end while the sums are written
  usage.pending = new Map()
  usage.flushedAt = pod.now().getTime()
  for (const host of await writeSums(pod, usage, pending, limit)) {
    if (!exhaustedHosts.has(host))
      pod.log.warn({ host, limit }, 'daily byte limit of a pod reached, further messages ignored')
    exhaustedHosts.add(host)
  }
}

/** A failed write does not fail the batch; its sums are added to the next ones. */
async function writeSums(
  { db, log }: Pick<Pod, 'db' | 'log'>,
  usage: DailyUsage,
  pending: ReadonlyMap<string, number>,
  limit: number,
): Promise<readonly string[]> {
  try {
    return await addPodBytes(db, pending, limit)
  } catch (err) {
    log.warn({ err }, 'daily bytes of pods could not be written')
    for (const [host, bytes] of pending) usage.pending.set(host, (usage.pending.get(host) ?? 0) + bytes)
    return []
  }
}

function hostOf(address: string): string {
  return splitAddress(address)?.host ?? ''
}
