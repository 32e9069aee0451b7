import { setTimeout as pause } from 'node:timers/promises'
import { Semaphore } from '../../../concurrency/semaphore.js'
import { claimLookup } from '../../../persistence/archives/archive-lookups.js'
import { Person } from '../../../persistence/models/person.js'
import { RemotePod } from '../../../persistence/models/remote-pod.js'
import { findNewestIdentities } from '../../../persistence/people/move-person.js'
import { parseAddress, splitAddress } from '../../../protocol/address.js'
import { ProtocolError } from '../../../protocol/errors.js'
import type { Services } from '../../../services/services.js'
import { discoverPerson } from '../../discovery/discover-person.js'
import { isThisPod, parseHomeUrl, parsePodHost } from '../../discovery/pod-location.js'
import { IMPORT_LIMITS } from '../limits.js'

export type FoundPerson =
  | {
      readonly state: 'found'
      /** The person with this address. */
      readonly person: Person
      /** The identity to which the person has moved since; `person` itself if there is none. */
      readonly newest: Person
    }
  | { readonly state: 'refused'; readonly reason: 'not_found' | 'pod_blocked' | 'over_limit' }

/** Finds the people of an archive, those of other pods by discovery. */
export interface PeopleFinder {
  find(addresses: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, FoundPerson>>
}

const HOST_BATCH_SIZE = 20

/** Hosts that answer slowly, or not at all, cost a bounded time: of each call, and in all. */
export function openPeopleFinder(services: Services, totalMs = Number.POSITIVE_INFINITY): PeopleFinder {
  const endOfAll = performance.now() + totalMs
  const refusedPeople = new Map<string, FoundPerson>()

  async function discover(address: string, signal: AbortSignal): Promise<FoundPerson | undefined> {
    const home = parseHomeUrl(address)
    const host = splitAddress(address)?.host ?? ''
    if (home === undefined || isThisPod(services.config, parsePodHost(home))) return NOT_FOUND
    if (await RemotePod.isBlocked(services.db, parsePodHost(home))) return { state: 'refused', reason: 'pod_blocked' }
    const now = services.now()
    const { unknownPeopleOfHost: max, lookupIntervalMs: intervalMs } = IMPORT_LIMITS
    const at = await claimLookup(services.db, host, { now, max, intervalMs })
    if (at === undefined) return OVER_LIMIT
    if (at > now) await pause(at.getTime() - now.getTime(), undefined, { signal })
    try {
      await discoverPerson(services, address)
      return undefined
    } catch (error) {
      if (error instanceof ProtocolError) return NOT_FOUND
      throw error
    }
  }

  return {
    async find(addresses, signal) {
      const validAddresses = [...new Set(addresses)].filter((address) => parseAddress(address) === address)
      const knownPeople = await findKnown(services, validAddresses)
      const unknown = validAddresses.filter((address) => !knownPeople.has(address) && !refusedPeople.has(address))
      const semaphore = new Semaphore(HOST_BATCH_SIZE)
      const end = Math.min(endOfAll, performance.now() + IMPORT_LIMITS.lookupsOfBatchMs)
      const lateAddresses = new Set<string>()
      await Promise.all(
        unknown.map((address) =>
          semaphore.run(async () => {
            signal.throwIfAborted()
            if (performance.now() >= end) return void lateAddresses.add(address)
            const fault = await discover(address, signal)
            if (fault !== undefined) refusedPeople.set(address, fault)
          }),
        ),
      )
      const people = unknown.length === 0 ? knownPeople : await findKnown(services, validAddresses)
      return new Map(
        addresses.map((address) => [
          address,
          people.get(address) ?? refusedPeople.get(address) ?? (lateAddresses.has(address) ? OVER_LIMIT : NOT_FOUND),
        ]),
      )
    },
  }
}

/** Whether moderators have blocked a person or their pod. */
export function isBlockedHere({ restriction, pod }: Person): boolean {
  return restriction === 'block' || (pod?.blockedAt ?? null) !== null
}

const NOT_FOUND: FoundPerson = { state: 'refused', reason: 'not_found' }
const OVER_LIMIT: FoundPerson = { state: 'refused', reason: 'over_limit' }

async function findKnown({ db }: Services, addresses: readonly string[]): Promise<ReadonlyMap<string, FoundPerson>> {
  const people = await Person.byAddresses(db, addresses).withGraphFetched('pod')
  const newest = await findNewestIdentities(
    db,
    people.filter(({ closedAt }) => closedAt !== null).map(({ id }) => id),
  )
  const others = await Person.query(db)
    .findByIds([...new Set(newest.values())])
    .withGraphFetched('pod')
  const byId = new Map(others.map((person) => [person.id, person]))
  return new Map(
    people.map((person) => {
      const newestPerson = byId.get(newest.get(person.id) ?? person.id) ?? person
      return [person.address, { state: 'found', person, newest: newestPerson }]
    }),
  )
}
