import { discoverPerson, discoverProfile } from '../../src/federation/discovery/discover-person.js'
import { discoverSigners } from '../../src/federation/discovery/discover-signers.js'
import { fetchEntity } from '../../src/federation/discovery/fetch-entity.js'
import { ANONYMOUS_LOOKUP_LIMITS } from '../../src/federation/discovery/limits.js'
import type { discoverSignersJob, lookUpLinkedJob, lookUpPersonJob } from '../../src/jobs/definitions.js'
import type { ProtocolFault } from '../../src/protocol/errors.js'
import { readHost, runWithoutRetry } from './fetch.js'
import type { JobHandlers } from './job-handlers.js'
import { runWithinLimit } from './run-within-limit.js'

type UnverifiedFetchJob = typeof discoverSignersJob | typeof lookUpPersonJob | typeof lookUpLinkedJob

/** A visitor waits for the page. */
const VISITOR_TIME_LIMIT = { withinMs: ANONYMOUS_LOOKUP_LIMITS.discoveryMs }

/**
 * Lookups that need neither a verified signature nor an account. They have a queue of their own, so that no other work waits for
 * them. The handlers of one worker count its running lookups.
 */
export function openUnverifiedFetchHandlers(): JobHandlers<UnverifiedFetchJob> {
  /** Running lookups: all under one key, and by host. */
  const allLookups = new Map<string, number>()
  const lookupsOfHost = new Map<string, number>()

  async function withLimits(from: string, fault: ProtocolFault, work: () => Promise<unknown>): Promise<void> {
    const { maxConcurrent, maxConcurrentOfHost } = ANONYMOUS_LOOKUP_LIMITS
    await runWithinLimit(allLookups, { limit: maxConcurrent, host: 'all hosts', fault }, () =>
      runWithinLimit(lookupsOfHost, { limit: maxConcurrentOfHost, host: readHost(from), fault }, work),
    )
  }

  return {
    'discover-signers': (services, { data: { host } }, deadline) => discoverSigners(services, host, deadline),

    'look-up-person': (services, { data }) =>
      runWithoutRetry(services, () =>
        'address' in data
          ? withLimits(data.address, 'DiscoveryFailed', () =>
              discoverPerson(services, data.address, VISITOR_TIME_LIMIT),
            )
          : withLimits(data.host, 'DiscoveryFailed', () => discoverProfile(services, data, VISITOR_TIME_LIMIT)),
      ),

    'look-up-linked': (services, { data }) =>
      runWithoutRetry(services, () =>
        withLimits(data.from, 'NotFetchable', () => fetchEntity(services, data, VISITOR_TIME_LIMIT)),
      ),
  }
}
