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
import { type JobContext, postpone } from '../../src/jobs/outbox/outbox.js'
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
    await waitForPausedPod(pod, work, address)
    await withShareOf(pod, address, 'DiscoveryFailed', (within) =>
      discoverPerson(pod, address, { ...again, ...within }),
    )
  },

  async 'fetch-entity'(pod, work) {
    await waitForPausedPod(pod, work, work.data.from)
    await withShareOf(pod, work.data.from, 'NotFetchable', () => fetchEntity(pod, work.data, again))
  },

  'discover-mentioned': (pod, work) =>
    withHalfShareOf(pod, work.data.address, 'DiscoveryFailed', () => ifPossible(pod, () => meetMentioned(pod, work))),

  'discover-searched': (pod, { data: { address } }) =>
    ifPossible(pod, () =>
      countedAt(running, shareOf(pod), address, 'DiscoveryFailed', async () =>
        enqueueFirstStream(pod, await discoverPerson(pod, address)),
      ),
    ),

  async 'fetch-stream'(pod, work) {
    const { address } = work.data
    await waitForPausedPod(pod, work, address)
    await withHalfShareOf(pod, address, 'NotFetchable', () => ifPossible(pod, () => fetchPersonStream(pod, address)))
  },

  async 'fetch-linked'(pod, work) {
    const { data } = work
    await waitForPausedPod(pod, work, data.from)
    await withHalfShareOf(pod, data.from, 'NotFetchable', () => ifPossible(pod, () => fetchEntity(pod, data)))
  },
}

/** Postpones a job that would send a request to a paused pod until the end of the pause. */
async function waitForPausedPod(pod: Pod, { outboxId }: JobContext, from: string): Promise<void> {
  const seconds = await OtherPod.secondsOfPause(pod.db, splitAddress(from)?.host ?? from)
  if (seconds !== undefined && outboxId !== undefined) await postpone(pod.db, outboxId, seconds)
}

async function meetMentioned(
  pod: Pod,
  work: JobContext & { readonly data: DataOf<typeof discoverMentionedJob> },
): Promise<void> {
  const { address, namedIn, arrivedIn } = work.data
  const person = await discoverPerson(pod, address)
  if (namedIn !== undefined) await deliverToMentioned(pod, work, person, namedIn)
  if (arrivedIn !== undefined) await attachDiscoveredPerson(pod, work, person, arrivedIn)
}

/** Runs work on which nothing depends: a failure is logged and not retried. */
export async function ifPossible(pod: Pod, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    pod.log.info({ fault: error.fault, reason: error.message }, 'look-up failed, not retried')
  }
}

/** Running jobs, by the host of their first request. */
const running = new Map<string, number>()

/**
 * Limits the running jobs of a host to its concurrent requests. More jobs would only wait, in slots that other hosts need; they
 * return by their back-off.
 */
async function withShareOf(
  pod: Pod,
  from: string,
  fault: ProtocolFault,
  work: (within?: { readonly within: number }) => Promise<unknown>,
): Promise<void> {
  const host = splitAddress(from)?.host ?? from
  const isKnown = (await findKnownHosts(pod.db, [host])).has(host)
  if (isKnown) return countedAt(running, shareOf(pod), host, fault, () => work())
  // Verified senders may name invented hosts too: each gets half of a share, and all together half of the slots.
  const share = Math.max(1, Math.floor(shareOf(pod) / 2))
  const within = { within: SIGNER_LIMITS.unknownHostMs }
  await countedAt(runningAtUnknownHosts, shareOf(pod), UNKNOWN_HOSTS, fault, () =>
    countedAt(running, share, host, fault, () => work(within)),
  )
}

const UNKNOWN_HOSTS = 'hosts where no pod has answered'
const runningAtUnknownHosts = new Map<string, number>()

/** Running jobs of links and mentions, by host. */
const runningOfTexts = new Map<string, number>()

/** Links and mentions take at most half of the share of a host, so that look-ups of its senders always get a slot. */
async function withHalfShareOf(
  pod: Pod,
  from: string,
  fault: ProtocolFault,
  work: () => Promise<unknown>,
): Promise<void> {
  const share = Math.max(1, Math.floor(shareOf(pod) / 2))
  await countedAt(runningOfTexts, share, from, fault, () => withShareOf(pod, from, fault, work))
}

/** Counts running jobs of a host; refuses one beyond the limit. */
export async function countedAt(
  running: Map<string, number>,
  most: number,
  from: string,
  fault: ProtocolFault,
  work: () => Promise<unknown>,
): Promise<void> {
  const host = splitAddress(from)?.host ?? from
  const count = running.get(host) ?? 0
  if (count >= most) throw new ProtocolError(fault, `too many requests to ${host} at the moment`)
  running.set(host, count + 1)
  try {
    await work()
  } finally {
    const left = (running.get(host) ?? 1) - 1
    if (left > 0) running.set(host, left)
    else running.delete(host)
  }
}

function shareOf({ config }: Pod): number {
  const slots = config.workerConcurrency.fetch ?? Number.POSITIVE_INFINITY
  return Math.min(REMOTE_LIMITS.fetchesPerHost, Math.max(1, Math.floor(slots / 2)))
}
