import { setTimeout as pause } from 'node:timers/promises'
import { SEARCH_LIMITS } from '../../domain/people/limits.js'
import { discoverSearchedJob } from '../../jobs/definitions.js'
import { QueueUnavailable } from '../../jobs/queues/queue-unavailable.js'
import { Person } from '../../persistence/models/person.js'
import { parseAddress } from '../../protocol/address.js'
import type { Services } from '../../services/services.js'
import { addFirstStreamFetch } from './fetch-person-stream.js'
import { isRemoteAddress } from './pod-location.js'

/**
 * If the search text is a complete address of an unknown remote person, enqueues a lookup and waits a moment for its result. A
 * later result appears in the next search.
 */
export async function discoverSearchedPerson(services: Services, text: string): Promise<void> {
  const address = parseAddress(text)
  if (address === undefined || !isRemoteAddress(services, address)) return
  const storedPerson = await Person.byAddress(services.db, address)
  try {
    if (storedPerson !== undefined) return await addFirstStreamFetch(services, storedPerson)
    await services.jobs.add(discoverSearchedJob, { address }, { deduplicationKey: `discover-${address}` })
  } catch (error) {
    if (!(error instanceof QueueUnavailable)) throw error
    services.log.warn({ err: error }, 'remote search lookup skipped: queue unavailable')
    return
  }
  const until = performance.now() + SEARCH_LIMITS.discoveryMs
  do await pause(SEARCH_LIMITS.pollIntervalMs)
  while (performance.now() < until && !(await Person.isKnown(services.db, address)))
}
