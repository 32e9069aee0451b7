import { discoverPerson } from '../../src/federation/discovery/discover-person.js'
import { fetchEntity } from '../../src/federation/discovery/fetch-entity.js'
import { addFirstStreamFetch, fetchPersonStream } from '../../src/federation/discovery/fetch-person-stream.js'
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
} from '../../src/jobs/definitions.js'
import { type JobContext, postpone } from '../../src/jobs/outbox/load-job.js'
import { SIGNER_LIMITS } from '../../src/jobs/waiting/limits.js'
import { findKnownHosts } from '../../src/jobs/waiting/signer-lookups.js'
import { RemotePod } from '../../src/persistence/models/remote-pod.js'
import { splitAddress } from '../../src/protocol/address.js'
import { ProtocolError, type ProtocolFault } from '../../src/protocol/errors.js'
import type { Services } from '../../src/services/services.js'
import type { JobHandlers } from './job-handlers.js'
import { runWithinLimit } from './run-within-limit.js'

type FetchJob =
  | typeof discoverPersonJob
  | typeof discoverMentionedJob
  | typeof discoverSearchedJob
  | typeof fetchStreamJob
  | typeof fetchEntityJob
  | typeof fetchLinkedJob

/** A retried job ignores the cache of recent failures. */
const IGNORE_RECENT_FAILURES = { ignoresRecentFailures: true } as const

/** The handlers of one worker, which count its running jobs by host. */
export function openFetchHandlers(): JobHandlers<FetchJob> {
  const slots = openHostSlots()
  return {
    async 'discover-person'(services, work) {
      const { address, movesFollowed = 0 } = work.data
      const host = readHost(address)
      await requireUnpausedPod(services, work, host)
      await runInHostShare(slots, services, { host, fault: 'DiscoveryFailed' }, (timeLimit) =>
        discoverPerson(services, address, { ...IGNORE_RECENT_FAILURES, ...timeLimit, movesFollowed }),
      )
    },

    async 'fetch-entity'(services, work) {
      const host = readHost(work.data.from)
      await requireUnpausedPod(services, work, host)
      await runInHostShare(slots, services, { host, fault: 'NotFetchable' }, () =>
        fetchEntity(services, work.data, IGNORE_RECENT_FAILURES),
      )
    },

    'discover-mentioned': (services, work) =>
      runInHalfHostShare(slots, services, { host: readHost(work.data.address), fault: 'DiscoveryFailed' }, () =>
        runWithoutRetry(services, () => discoverMentioned(services, work)),
      ),

    'discover-searched': (services, { data: { address } }) =>
      runWithoutRetry(services, () =>
        runWithinLimit(
          slots.jobsOfHost,
          { limit: hostShare(services), host: readHost(address), fault: 'DiscoveryFailed' },
          async () => addFirstStreamFetch(services, await discoverPerson(services, address)),
        ),
      ),

    async 'fetch-stream'(services, work) {
      const { address } = work.data
      const host = readHost(address)
      await requireUnpausedPod(services, work, host)
      await runInHalfHostShare(slots, services, { host, fault: 'NotFetchable' }, () =>
        runWithoutRetry(services, () => fetchPersonStream(services, address)),
      )
    },

    async 'fetch-linked'(services, work) {
      const { data } = work
      const host = readHost(data.from)
      await requireUnpausedPod(services, work, host)
      await runInHalfHostShare(slots, services, { host, fault: 'NotFetchable' }, () =>
        runWithoutRetry(services, () => fetchEntity(services, data)),
      )
    },
  }
}

/** Job data names an address or a host. */
export function readHost(from: string): string {
  return splitAddress(from)?.host ?? from
}

/** Throws for a job that would send a request to a paused pod: it is postponed until the end of the pause. */
async function requireUnpausedPod(services: Services, { outboxId }: JobContext, host: string): Promise<void> {
  const seconds = await RemotePod.secondsOfPause(services.db, host)
  if (seconds !== undefined && outboxId !== undefined) await postpone(services.db, outboxId, seconds)
}

async function discoverMentioned(
  services: Services,
  work: JobContext & { readonly data: DataOf<typeof discoverMentionedJob> },
): Promise<void> {
  const { address, namedIn, arrivedIn } = work.data
  const person = await discoverPerson(services, address)
  if (namedIn !== undefined) await deliverToMentioned(services, work, person, namedIn)
  if (arrivedIn !== undefined) await attachDiscoveredPerson(services, work, person, arrivedIn)
}

/** Runs work on which nothing depends: a failure is logged and not retried. */
export async function runWithoutRetry(services: Services, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    services.log.info({ fault: error.fault, reason: error.message }, 'lookup failed, not retried')
  }
}

/** Numbers of running jobs. */
interface HostSlots {
  /** Running jobs by the host of their first request; a host without running jobs has no entry. */
  readonly jobsOfHost: Map<string, number>
  /** Running jobs for links and mentions in texts, by host. */
  readonly textJobsOfHost: Map<string, number>
  /** All running jobs at hosts where no pod has answered yet, under one key. */
  readonly jobsAtUnknownHosts: Map<string, number>
}

function openHostSlots(): HostSlots {
  return { jobsOfHost: new Map(), textJobsOfHost: new Map(), jobsAtUnknownHosts: new Map() }
}

const UNKNOWN_HOSTS = 'hosts where no pod has answered'

interface HostRequest {
  readonly host: string
  /** The fault of a request beyond the share. */
  readonly fault: ProtocolFault
}

/**
 * Limits the running jobs of a host to its concurrent requests. More jobs would only wait, in slots that other hosts need; they
 * return by their back-off.
 */
async function runInHostShare(
  slots: HostSlots,
  services: Services,
  { host, fault }: HostRequest,
  work: (timeLimit?: { readonly withinMs: number }) => Promise<unknown>,
): Promise<void> {
  const isKnown = (await findKnownHosts(services.db, [host])).has(host)
  if (isKnown) return runWithinLimit(slots.jobsOfHost, { limit: hostShare(services), host, fault }, () => work())
  // Verified senders may name invented hosts too: each gets half of a share, and all together half of the slots.
  const timeLimit = { withinMs: SIGNER_LIMITS.unknownHostMs }
  await runWithinLimit(slots.jobsAtUnknownHosts, { limit: hostShare(services), host: UNKNOWN_HOSTS, fault }, () =>
    runWithinLimit(slots.jobsOfHost, { limit: halfHostShare(services), host, fault }, () => work(timeLimit)),
  )
}

/** Links and mentions take at most half of the share of a host, so that lookups of its senders always get a slot. */
async function runInHalfHostShare(
  slots: HostSlots,
  services: Services,
  { host, fault }: HostRequest,
  work: () => Promise<unknown>,
): Promise<void> {
  await runWithinLimit(slots.textJobsOfHost, { limit: halfHostShare(services), host, fault }, () =>
    runInHostShare(slots, services, { host, fault }, work),
  )
}

/** The slots of one host: half of all slots of the queue, and at most its concurrent requests. */
function hostShare({ config }: Services): number {
  const slots = config.workerConcurrency.fetch ?? Number.POSITIVE_INFINITY
  return Math.min(REMOTE_LIMITS.fetchesPerHost, Math.max(1, Math.floor(slots / 2)))
}

function halfHostShare(services: Services): number {
  return Math.max(1, Math.floor(hostShare(services) / 2))
}
