import { discoverPerson } from '../../src/federation/discovery/discover-person.js'
import { fetchEntity } from '../../src/federation/discovery/fetch-entity.js'
import { enqueueFirstStream, fetchPersonStream } from '../../src/federation/discovery/fetch-person-stream.js'
import { attachDiscoveredPerson } from '../../src/federation/inbound/mentioned-people.js'
import { deliverToMentioned } from '../../src/federation/outbound/mentioned-recipients.js'
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
import type { Work } from '../../src/jobs/outbox/outbox.js'
import { findKnownHosts } from '../../src/jobs/waiting/signer-lookups.js'
import { REMOTE_LIMITS, SIGNER_LIMITS } from '../../src/limits.js'
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

/** A job is tried again because it failed, so it does not ask whether it failed a moment ago. */
const again = { again: true }

export const fetchHandlers: Handlers<FetchJob, Pod, Work> = {
  'discover-person': (pod, { data: { address } }) =>
    withShareOf(pod, address, 'DiscoveryFailed', (within) => discoverPerson(pod, address, { ...again, ...within })),

  'fetch-entity': (pod, { data }) => withShareOf(pod, data.from, 'NotFetchable', () => fetchEntity(pod, data, again)),

  'discover-mentioned': (pod, work) =>
    withHalfShareOf(pod, work.data.address, 'DiscoveryFailed', () => ifPossible(pod, () => meetMentioned(pod, work))),

  'discover-searched': (pod, { data: { address } }) =>
    ifPossible(pod, () =>
      countedAt(inHand, shareOf(pod), address, 'DiscoveryFailed', async () =>
        enqueueFirstStream(pod, await discoverPerson(pod, address)),
      ),
    ),

  'fetch-stream': (pod, { data: { address } }) =>
    withHalfShareOf(pod, address, 'NotFetchable', () => ifPossible(pod, () => fetchPersonStream(pod, address))),

  'fetch-linked': (pod, { data }) =>
    withHalfShareOf(pod, data.from, 'NotFetchable', () => ifPossible(pod, () => fetchEntity(pod, data))),
}

async function meetMentioned(
  pod: Pod,
  work: Work & { readonly data: DataOf<typeof discoverMentionedJob> },
): Promise<void> {
  const { address, namedIn, arrivedIn } = work.data
  const person = await discoverPerson(pod, address)
  if (namedIn !== undefined) await deliverToMentioned(pod, work, person, namedIn)
  if (arrivedIn !== undefined) await attachDiscoveredPerson(pod, work, person, arrivedIn)
}

/** Nothing waits for it: where it cannot be had, that is all there is to it. */
export async function ifPossible(pod: Pod, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    pod.log.info({ fault: error.fault, reason: error.message }, 'not found')
  }
}

/** Jobs in hand, by the host that they ask first. */
const inHand = new Map<string, number>()

/**
 * A slow pod gets as many slots as may ask it at the same time. More jobs for it would do nothing but wait, in slots that
 * other pods need; they come back by their back-off.
 */
async function withShareOf(
  pod: Pod,
  from: string,
  fault: ProtocolFault,
  work: (within?: { readonly within: number }) => Promise<unknown>,
): Promise<void> {
  const host = splitAddress(from)?.host ?? from
  const isKnown = (await findKnownHosts(pod.db, [host])).has(host)
  if (isKnown) return countedAt(inHand, shareOf(pod), host, fault, () => work())
  // Verified senders may name invented hosts too: those take half of a share each, and half of the slots together.
  const share = Math.max(1, Math.floor(shareOf(pod) / 2))
  const within = { within: SIGNER_LIMITS.unknownHostMs }
  await countedAt(inHandAtStrangeHosts, shareOf(pod), STRANGE_HOSTS, fault, () =>
    countedAt(inHand, share, host, fault, () => work(within)),
  )
}

const STRANGE_HOSTS = 'hosts where no pod has answered'
const inHandAtStrangeHosts = new Map<string, number>()

/** Links and mentions in hand, by host. */
const inHandOfTexts = new Map<string, number>()

/** What a text only names takes at most half of a host's share, so that the look-up of a sender there never finds it taken. */
async function withHalfShareOf(
  pod: Pod,
  from: string,
  fault: ProtocolFault,
  work: () => Promise<unknown>,
): Promise<void> {
  const share = Math.max(1, Math.floor(shareOf(pod) / 2))
  await countedAt(inHandOfTexts, share, from, fault, () => withShareOf(pod, from, fault, work))
}

/** Refuses what would be one too many for this host. */
export async function countedAt(
  inHand: Map<string, number>,
  most: number,
  from: string,
  fault: ProtocolFault,
  work: () => Promise<unknown>,
): Promise<void> {
  const host = splitAddress(from)?.host ?? from
  const count = inHand.get(host) ?? 0
  if (count >= most) throw new ProtocolError(fault, `enough is asked of ${host} for now`)
  inHand.set(host, count + 1)
  try {
    await work()
  } finally {
    const left = (inHand.get(host) ?? 1) - 1
    if (left > 0) inHand.set(host, left)
    else inHand.delete(host)
  }
}

function shareOf({ config }: Pod): number {
  const slots = config.workerConcurrency.fetch ?? Number.POSITIVE_INFINITY
  return Math.min(REMOTE_LIMITS.fetchesPerHost, Math.max(1, Math.floor(slots / 2)))
}
