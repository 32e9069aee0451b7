import { addPodBytes } from '../../persistence/inbound/pod-bytes.js'
import type { Pod } from '../../pod/pod.js'
import { splitAddress } from '../../protocol/address.js'
import type { Arrival, IgnoredMessage } from './batch.js'

const FLUSH_EVERY_MS = 5_000
const DAY_MS = 24 * 3_600 * 1_000

interface Usage {
  /** Bytes that are not in the database yet, by host. */
  pending: Map<string, number>
  flushedAt: number
  /** Hosts that have sent their bytes of this day. */
  exhaustedHosts: Set<string>
  day: number
}

/** Of one pod in this process. */
const usages = new WeakMap<Pod['jobs'], Usage>()

function usageOf({ jobs, now }: Pick<Pod, 'jobs' | 'now'>): Usage {
  const time = now().getTime()
  const day = Math.floor(time / DAY_MS)
  const known = usages.get(jobs)
  if (known?.day === day) return known
  const fresh = {
    pending: known?.pending ?? new Map(),
    flushedAt: known?.flushedAt ?? time,
    exhaustedHosts: new Set<string>(),
    day,
  }
  usages.set(jobs, fresh)
  return fresh
}

/** What takes something back, or ends something, is always taken in. */
const EXEMPT: ReadonlySet<string> = new Set(['retraction', 'account_deletion', 'account_migration', 'contact'])

/** Leaves out what comes from pods whose people have sent as much as a pod may in a day. */
export function withinDailyBytes<Each extends Arrival>(
  pod: Pick<Pod, 'jobs' | 'now'>,
  arrivals: readonly Each[],
): { readonly ready: readonly Each[]; readonly ignored: readonly IgnoredMessage[] } {
  const { exhaustedHosts: hosts } = usageOf(pod)
  if (hosts.size === 0) return { ready: arrivals, ignored: [] }
  const isOver = ({ signer, entity }: Each) => hosts.has(hostOf(signer.address)) && !EXEMPT.has(entity.type)
  return {
    ready: arrivals.filter((arrival) => !isOver(arrival)),
    ignored: arrivals.filter(isOver).map((arrival) => {
      return {
        message: arrival.message,
        arrival,
        reason: `the pod of ${arrival.signer.address} has sent its bytes of the day`,
      }
    }),
  }
}

/**
 * Counts what was stored for the pods of the signers. Processes write their sums every few seconds, so that a pod may send more by
 * what arrives in that time.
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
    usage.pending.set(host, (usage.pending.get(host) ?? 0) + message.envelope.length)
  }
  if (pod.now().getTime() - usage.flushedAt < FLUSH_EVERY_MS) return
  const { pending } = usage
  usage.pending = new Map()
  usage.flushedAt = pod.now().getTime()
  for (const host of await addSums(pod, usage, pending, limit)) {
    if (!usage.exhaustedHosts.has(host))
      pod.log.warn({ host, limit }, 'the pod has sent its bytes of the day: more is dropped')
    usage.exhaustedHosts.add(host)
  }
}

/** A failure is no failure of the batch: the sums are added with the next ones. */
async function addSums(
  { db, log }: Pick<Pod, 'db' | 'log'>,
  usage: Usage,
  pending: ReadonlyMap<string, number>,
  limit: number,
): Promise<readonly string[]> {
  try {
    return await addPodBytes(db, pending, limit)
  } catch (err) {
    log.warn({ err }, 'the bytes of other pods could not be added up')
    for (const [host, bytes] of pending) usage.pending.set(host, (usage.pending.get(host) ?? 0) + bytes)
    return []
  }
}

function hostOf(address: string): string {
  return splitAddress(address)?.host ?? ''
}
