import { LOOKUP_LIMITS, SERVE_LIMITS } from '../limits.js'
import { Person } from '../persistence/models/person.js'
import type { Pod } from '../pod.js'
import { addressOf } from '../protocol/address.js'
import { ProtocolError } from '../protocol/errors.js'
import type { EntityLink } from '../protocol/mentions.js'
import { discoverPerson } from './discover-person.js'
import { fetchEntity } from './fetch-entity.js'

/** Asked in the name of somebody who waits in front of a screen. */
const options = { within: SERVE_LIMITS.discoveryMs }
/** The fetch of what the link names is the first one. */
const fetchesLeft = LOOKUP_LIMITS.fetchesOfMessage - 1

/** Who has this address, known here or found in that time; undefined: nobody. */
export async function lookUpPerson(pod: Pod, text: string): Promise<Person | undefined> {
  const address = addressOf(text)
  if (address === undefined) return undefined
  // Who is known is shown at once, however old what we know may be.
  return (await Person.byAddress(pod.db, address)) ?? (await ifFound(discoverPerson(pod, address, options)))
}

/** Takes in what a link leads to, if its author's pod has it and gives it away. */
export async function lookUpLinked(pod: Pod, { author, guid }: EntityLink, type: 'post' | 'poll'): Promise<void> {
  await ifFound(fetchEntity(pod, { type, guid, from: author, author, depth: 0, fetchesLeft }, options))
}

async function ifFound<Found>(looking: Promise<Found>): Promise<Found | undefined> {
  try {
    return await looking
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}
