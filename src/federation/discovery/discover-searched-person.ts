import { setTimeout as pause } from 'node:timers/promises'
import { discoverSearchedJob } from '../../jobs/definitions.js'
import { QueueUnavailable } from '../../jobs/queues/queue-unavailable.js'
import { SEARCH_LIMITS } from '../../limits.js'
import { Person } from '../../persistence/models/person.js'
import type { Pod } from '../../pod/pod.js'
import { addressOf } from '../../protocol/address.js'
import { enqueueFirstStream } from './fetch-person-stream.js'
import { isRemoteAddress } from './pod-location.js'

/**
 * Has a worker ask for somebody whom nobody here knows, if that is a whole address, and waits a moment for it. Who is found
 * later is known to the next one who asks.
 */
export async function discoverSearchedPerson(pod: Pod, text: string): Promise<void> {
  const address = addressOf(text)
  if (address === undefined || !isRemoteAddress(pod, address)) return
  const known = await Person.byAddress(pod.db, address)
  try {
    if (known !== undefined) return await enqueueFirstStream(pod, known)
    await pod.jobs.enqueue(discoverSearchedJob, { address }, { unique: `discover-${address}` })
  } catch (error) {
    if (!(error instanceof QueueUnavailable)) throw error
    pod.log.warn({ err: error }, 'nobody can be asked for somebody who is searched for')
    return
  }
  const until = performance.now() + SEARCH_LIMITS.discoveryMs
  do await pause(SEARCH_LIMITS.lookEveryMs)
  while (performance.now() < until && !(await Person.isKnown(pod.db, address)))
}
