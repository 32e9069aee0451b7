import { inChunks } from '../../jobs/chunks.js'
import { SIGNER_LIMITS } from '../../jobs/waiting/limits.js'
import { lockEntityKeys } from '../../jobs/waiting/lock-entity-keys.js'
import {
  addSignerLookups,
  delayLookups,
  deleteLookups,
  findAllDueLookups,
  findDueLookups,
  findKnownHosts,
  recordFailedLookups,
} from '../../jobs/waiting/signer-lookups.js'
import { giveUpSigners } from '../../jobs/waiting/unverified-messages.js'
import { ProtocolError } from '../../protocol/errors.js'
import type { Services } from '../../services/services.js'
import { isLocalOverload, type RemoteFault, RemotePodError } from '../remote-pod/remote-pod-error.js'
import { discoverPerson } from './discover-person.js'

/**
 * The outcome of one lookup. `absent`: the host itself does not respond, so no person of it can be found now. `overloaded`: this pod
 * has too many requests under way.
 */
type LookupOutcome = 'found' | 'failed' | 'absent' | 'overloaded'

/**
 * Looks up the unknown signers of waiting messages at one host: one at a time until the host has responded, and none after the
 * first request without a response. Each job has one host, so an unresponsive host occupies one slot for a few seconds, however
 * many signers are claimed for it.
 */
export async function discoverSigners(services: Services, host: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + SIGNER_LIMITS.runMs
  const isKnown = (await findKnownHosts(services.db, [host])).has(host)
  const withinMs = isKnown ? SIGNER_LIMITS.knownHostMs : SIGNER_LIMITS.unknownHostMs
  const maxAttempts = isKnown ? SIGNER_LIMITS.attemptsAtKnownHost : SIGNER_LIMITS.attemptsAtUnknownHost
  let maxConcurrent = 1
  while (!signal.aborted) {
    const addresses = await findDueLookups(services.db, host, maxConcurrent)
    if (addresses.length === 0) return
    if (performance.now() > until) {
      // The host goes to the end of the queue again, like a host with its first lookup.
      return addSignerLookups(services, [{ host, isKnown, isRetry: false }])
    }
    const outcomes = await Promise.all(addresses.map((address) => lookUpSigner(services, address, withinMs)))
    const addressesWith = (expected: LookupOutcome) => addresses.filter((_, index) => outcomes[index] === expected)
    await deleteLookups(services.db, addressesWith('found'))
    await recordFailures(services, addressesWith('failed'), maxAttempts)
    if (outcomes.includes('overloaded')) return delayLookups(services.db, await findAllDueLookups(services.db, host))
    if (outcomes.includes('absent'))
      return recordFailures(services, await findAllDueLookups(services.db, host), maxAttempts)
    maxConcurrent = SIGNER_LIMITS.maxConcurrent
  }
}

async function lookUpSigner(services: Services, address: string, withinMs: number): Promise<LookupOutcome> {
  try {
    await discoverPerson(services, address, { ignoresRecentFailures: true, withinMs })
    return 'found'
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    if (isLocalOverload(error)) return 'overloaded'
    services.log.info({ fault: error.fault, reason: error.message }, 'signer not found')
    return error.cause instanceof RemotePodError && HOST_FAULTS.has(error.cause.fault) ? 'absent' : 'failed'
  }
}

/** Faults of the whole host, not of one person. */
const HOST_FAULTS: ReadonlySet<RemoteFault> = new Set(['dns', 'net', 'timeout', 'ssl', 'not_allowed'])

async function recordFailures(services: Services, addresses: readonly string[], maxAttempts: number): Promise<void> {
  const givenUp = await recordFailedLookups(services.db, addresses, maxAttempts)
  for (const batch of inChunks(givenUp, GIVEN_UP_LOOKUP_BATCH_SIZE)) await giveUpLookups(services, batch)
}

/** Each address takes a lock, and the lock table of the server has some thousand places for all sessions. */
const GIVEN_UP_LOOKUP_BATCH_SIZE = 100

async function giveUpLookups(services: Services, addresses: readonly string[]): Promise<void> {
  await services.db.transaction(async (transaction) => {
    // With the locks no message can start to wait for a signer between these two statements.
    await lockEntityKeys(
      transaction,
      addresses.map((address) => `person:${address}` as const),
    )
    await giveUpSigners(services, transaction, addresses)
    await deleteLookups(transaction, addresses)
  })
}
