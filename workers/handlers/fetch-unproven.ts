import { discoverPerson, discoverProfile } from '../../src/federation/discovery/discover-person.js'
import { discoverSigners } from '../../src/federation/discovery/discover-signers.js'
import { fetchEntity } from '../../src/federation/discovery/fetch-entity.js'
import { ANONYMOUS_LOOKUP_LIMITS } from '../../src/federation/discovery/limits.js'
import type { discoverSignersJob, Handlers, lookUpLinkedJob, lookUpPersonJob } from '../../src/jobs/definitions.js'
import type { JobContext } from '../../src/jobs/outbox/outbox.js'
import type { Pod } from '../../src/pod/pod.js'
import type { ProtocolFault } from '../../src/protocol/errors.js'
import { readHost, runOnce, runWithinLimit } from './fetch.js'

type UnprovenJob = typeof discoverSignersJob | typeof lookUpPersonJob | typeof lookUpLinkedJob

/** A visitor waits for the page. */
const within = { within: ANONYMOUS_LOOKUP_LIMITS.discoveryMs }

/**
 * Lookups that need neither a verified signature nor an account. They have a queue of their own, so that no other work waits behind
 * them.
 */
export const unprovenHandlers: Handlers<UnprovenJob, Pod, JobContext> = {
  'discover-signers': (pod, { data: { host } }, deadline) => discoverSigners(pod, host, deadline),

  'look-up-person': (pod, { data }) =>
    runOnce(pod, () =>
      'address' in data
        ? withLimits(data.address, 'DiscoveryFailed', () => discoverPerson(pod, data.address, within))
        : withLimits(data.host, 'DiscoveryFailed', () => discoverProfile(pod, data, within)),
    ),

  'look-up-linked': (pod, { data }) =>
    runOnce(pod, () => withLimits(data.from, 'NotFetchable', () => fetchEntity(pod, data, within))),
}

/** Running lookups: all under one key, and by host. */
const allLookups = new Map<string, number>()
const lookupsOfHost = new Map<string, number>()

async function withLimits(from: string, fault: ProtocolFault, work: () => Promise<unknown>): Promise<void> {
  const { atOnce, atOnceOfHost } = ANONYMOUS_LOOKUP_LIMITS
  await runWithinLimit(allLookups, atOnce, 'all hosts', fault, () =>
    runWithinLimit(lookupsOfHost, atOnceOfHost, readHost(from), fault, work),
  )
}
