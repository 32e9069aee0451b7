import { discoverPerson } from '../../src/federation/discovery/discover-person.js'
import { fetchEntity } from '../../src/federation/discovery/fetch-entity.js'
import { enqueueFirstStream, fetchPersonStream } from '../../src/federation/discovery/fetch-person-stream.js'
import { attachDiscoveredPerson } from '../../src/federation/inbound/mentioned-people.js'
import { deliverToMentioned } from '../../src/federation/outbound/mentioned-recipients.js'
import { REMOTE_LIMITS } from '../../src/federation/remote-pod/limits.js'
import type {
  DataOf,
  discoverMentionedJob,
  discoverPersonJob,
  discoverSearchedJob,
  fetchEntityJob,
  fetchLinkedJob,
  fetchStreamJob,
  Handlers,
} from '../../src/jobs/definitions.js'
import { type JobContext, postponed } from '../../src/jobs/outbox/outbox.js'
import { SIGNER_LIMITS } from '../../src/jobs/waiting/limits.js'
import { findKnownHosts } from '../../src/jobs/waiting/signer-lookups.js'
import { Pod as OtherPod } from '../../src/persistence/models/pod.js'
import type { Pod } from '../../src/pod/pod.js'
import { splitAddress } from '../../src/protocol/address.js'
import { ProtocolError, type ProtocolFault } from '../../src/protocol/errors.js'

type FetchJob =
  | typeof discoverPersonJob
  | typeof discoverMentionedJob
  | typeof discoverSearchedJob
  | typeof fetchStreamJob
  | typeof fetchEntityJob
  | typeof fetchLinkedJob

/** A retried job ignores the cache of recent failures. */
const again = { again: true }

export const fetchHandlers: Handlers<FetchJob, Pod, JobContext> = {
  async 'discover-person'(pod, work) {
    const { address } = work.data
    const host = readHost(address)
    await requireUnpausedPod(pod, work, host)
    await runInHostShare(pod, host, 'DiscoveryFailed', (within) =>
      discoverPerson(pod, address, { ...again, ...within }),
    )
  },

  async 'fetch-entity'(pod, work) {
    const host = readHost(work.data.from)
    await requireUnpausedPod(pod, work, host)
    await runInHostShare(pod, host, 'NotFetchable', () => fetchEntity(pod, work.data, again))
  },

  'discover-mentioned': (pod, work) =>
    runInHalfHostShare(pod, readHost(work.data.address), 'DiscoveryFailed', () =>
      runOnce(pod, () => discoverMentioned(pod, work)),
    ),

  'discover-searched': (pod, { data: { address } }) =>
    runOnce(pod, () =>
      runWithinLimit(jobsOfHost, hostShare(pod), readHost(address), 'DiscoveryFailed', async () =>
        enqueueFirstStream(pod, await discoverPerson(pod, address)),
      ),
    ),

  async 'fetch-stream'(pod, work) {
    const { address } = work.data
    const host = readHost(address)
    await requireUnpausedPod(pod, work, host)
    await runInHalfHostShare(pod, host, 'NotFetchable', () => runOnce(pod, () => fetchPersonStream(pod, address)))
  },

  async 'fetch-linked'(pod, work) {
    const { data } = work
    const host = readHost(data.from)
    await requireUnpausedPod(pod, work, host)
    await runInHalfHostShare(pod, host, 'NotFetchable', () => runOnce(pod, () => fetchEntity(pod, data)))
  },
}

/** Job data names an address or a host. */
export function readHost(from: string): string {
  return splitAddress(from)?.host ?? from
}

/** Throws for a job that would send a request to a paused pod: it is postponed until the end of the pause. */
async function requireUnpausedPod(pod: Pod, { outboxId }: JobContext, host: string): Promise<void> {
  const seconds = await OtherPod.secondsOfPause(pod.db, host)
  if (seconds !== undefined && outboxId !== undefined) throw await postponed(pod.db, outboxId, seconds)
}

async function discoverMentioned(
  pod: Pod,
  work: JobContext & { readonly data: DataOf<typeof discoverMentionedJob> },
): Promise<void> {
  const { address, namedIn, arrivedIn } = work.data
  const person = await discoverPerson(pod, address)
  if (namedIn !== undefined) await deliverToMentioned(pod, work, person, namedIn)
  if (arrivedIn !== undefined) await attachDiscoveredPerson(pod, work, person, arrivedIn)
}

/** Runs work on which nothing depends: a failure is logged and not retried. */
export async function runOnce(pod: Pod, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    pod.log.info({ fault: error.fault, reason: error.message }, 'lookup failed, not retried')
  }
}

/** Running jobs by the host of their first request; a host without running jobs has no entry. */
const jobsOfHost = new Map<string, number>()

/** Those of links and mentions in texts. */
const textJobsOfHost = new Map<string, number>()

/** All running jobs at hosts where no pod has answered yet, under one key. */
const jobsAtUnknownHosts = new Map<string, number>()
const UNKNOWN_HOSTS = 'hosts where no pod has answered'

/**
 * Limits the running jobs of a host to its concurrent requests. More jobs would only wait, in slots that other hosts need; they
 * return by their back-off.
 */
async function runInHostShare(
  pod: Pod,
  host: string,
  fault: ProtocolFault,
  work: (within?: { readonly within: number }) => Promise<unknown>,
): Promise<void> {
  const isKnown = (await findKnownHosts(pod.db, [host])).has(host)
  if (isKnown) return runWithinLimit(jobsOfHost, hostShare(pod), host, fault, () => work())
  // Verified senders may name invented hosts too: each gets half of a share, and all together half of the slots.
  const within = { within: SIGNER_LIMITS.unknownHostMs }
  await runWithinLimit(jobsAtUnknownHosts, hostShare(pod), UNKNOWN_HOSTS, fault, () =>
    runWithinLimit(jobsOfHost, halfHostShare(pod), host, fault, () => work(within)),
  )
}

/** Links and mentions take at most half of the share of a host, so that lookups of its senders always get a slot. */
async function runInHalfHostShare(
  pod: Pod,
  host: string,
  fault: ProtocolFault,
  work: () => Promise<unknown>,
): Promise<void> {
  await runWithinLimit(textJobsOfHost, halfHostShare(pod), host, fault, () => runInHostShare(pod, host, fault, work))
}

/** Counts running jobs of a host; refuses one beyond the limit. */
export async function runWithinLimit(
  running: Map<string, number>,
  limit: number,
  host: string,
  fault: ProtocolFault,
  work: () => Promise<unknown>,
): Promise<void> {
  const count = running.get(host) ?? 0
  if (count >= limit) throw new ProtocolError(fault, `too many requests to ${host} at the moment`)
  running.set(host, count + 1)
  try {
    await work()
  } finally {
    const left = (running.get(host) ?? 1) - 1
    if (left > 0) running.set(host, left)
    else running.delete(host)
  }
}

/** The slots of one host: half of all slots of the queue, and at most its concurrent requests. */
function hostShare({ config }: Pod): number {
  const slots = config.workerConcurrency.fetch ?? Number.POSITIVE_INFINITY
  return Math.min(REMOTE_LIMITS.fetchesPerHost, Math.max(1, Math.floor(slots / 2)))
}

function halfHostShare(pod: Pod): number {
  return Math.max(1, Math.floor(hostShare(pod) / 2))
}
