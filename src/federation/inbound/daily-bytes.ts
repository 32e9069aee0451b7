import { stateByOwner } from '../../concurrency/state-by-owner.js'
import { addPodBytes } from '../../persistence/inbound/pod-bytes.js'
import { splitAddress } from '../../protocol/address.js'
import { DAY_MS } from '../../protocol/durations.js'
import { ENTITY_TYPES, type ReceivedEntity } from '../../protocol/entities/registry.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import type { Services } from '../../services/services.js'
import type { StepResult, VerifiedMessage } from './batch.js'

const FLUSH_INTERVAL_MS = 5_000

interface DailyUsage {
  /** Bytes by host that are not in the database yet. */
  pending: Map<string, number>
  flushedAt: number
  /** Hosts that have reached the limit of this day. */
  exhaustedHosts: Set<string>
  day: number
}

/** Usage by the set of open services: a test process opens several. */
const usageOfServices = stateByOwner<Services['jobs'], DailyUsage>()

function usageOf({ jobs, now }: Pick<Services, 'jobs' | 'now'>): DailyUsage {
  const time = now().getTime()
  const day = Math.floor(time / DAY_MS)
  const usage = usageOfServices(jobs, () => ({ pending: new Map(), flushedAt: time, exhaustedHosts: new Set(), day }))
  if (usage.day !== day) Object.assign(usage, { exhaustedHosts: new Set(), day })
  return usage
}

/** Types that may end something are stored without limit: the loss of one would leave two pods with different states. */
function isExempt({ type }: ReceivedEntity): boolean {
  return ENTITY_TYPES[type].deletesOrEnds !== 'never'
}

/** Ignores entities from pods that have reached their limit of bytes for this day. */
export function ignoreOverDailyBytes<Each extends VerifiedMessage>(
  services: Pick<Services, 'jobs' | 'now'>,
  messages: readonly Each[],
): StepResult<Each> {
  const { exhaustedHosts: hosts } = usageOf(services)
  if (hosts.size === 0) return { ready: messages, ignored: [], waiting: [], rejected: [] }
  const isOverLimit = ({ signer, entity }: Each) => hosts.has(hostOf(signer.address)) && !isExempt(entity)
  return {
    ready: messages.filter((message) => !isOverLimit(message)),
    ignored: messages.filter(isOverLimit).map((message) => {
      return {
        inbound: message.inbound,
        message,
        reason: `the pod of ${message.signer.address} has reached its daily byte limit`,
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
  services: Pick<Services, 'config' | 'db' | 'jobs' | 'log' | 'now'>,
  stored: readonly Pick<VerifiedMessage, 'signer' | 'inbound'>[],
): Promise<void> {
  const limit = services.config.podBytesPerDay
  if (limit === 0) return
  const usage = usageOf(services)
  for (const { signer, inbound } of stored) {
    const host = hostOf(signer.address)
    usage.pending.set(host, (usage.pending.get(host) ?? 0) + envelopeBytes(inbound.envelope))
  }
  if (services.now().getTime() - usage.flushedAt < FLUSH_INTERVAL_MS) return
  const { pending, exhaustedHosts } = usage // the day may end while the sums are written
  usage.pending = new Map()
  usage.flushedAt = services.now().getTime()
  for (const host of await writeSums(services, usage, pending, limit)) {
    if (!exhaustedHosts.has(host))
      services.log.warn({ host, limit }, 'daily byte limit of a pod reached, further messages ignored')
    exhaustedHosts.add(host)
  }
}

/** A failed write does not fail the batch; its sums are added to the next ones. */
async function writeSums(
  { db, log }: Pick<Services, 'db' | 'log'>,
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
