import { SIGNER_LIMITS } from '../../jobs/waiting/limits.js'
import { lockEntityKeys } from '../../jobs/waiting/lock-entity-keys.js'
import {
  delayLookups,
  deleteLookups,
  enqueueSigners,
  findAllDueLookups,
  findDueLookups,
  findKnownHosts,
  postponeLookups,
} from '../../jobs/waiting/signer-lookups.js'
import { giveUpSigners } from '../../jobs/waiting/unverified-messages.js'
import type { Pod } from '../../pod/pod.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isLocalOverload, type RemoteFault, RemotePodError } from '../remote-pod/remote-pod-error.js'
import { discoverPerson } from './discover-person.js'

/** The outcome of one lookup. `absent`: the host itself does not respond, so no person of it can be found now. */
type LookupOutcome = 'found' | 'failed' | 'absent' | 'postponed'

/**
 * Looks up the unknown signers of waiting messages at one host: one at a time until the host has responded, and none after the
 * first request without a response. Each job has one host, so an unresponsive host occupies one slot for a few seconds, however
 * many signers are claimed for it.
 */
export async function discoverSigners(pod: Pod, host: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + SIGNER_LIMITS.drainMs
  const isKnown = (await findKnownHosts(pod.db, [host])).has(host)
  const within = isKnown ? SIGNER_LIMITS.knownHostMs : SIGNER_LIMITS.unknownHostMs
  const tries = isKnown ? SIGNER_LIMITS.triesAtKnownHost : SIGNER_LIMITS.triesAtUnknownHost
  let atOnce = 1
  while (!signal.aborted) {
    const addresses = await findDueLookups(pod.db, host, atOnce)
    if (addresses.length === 0) return
    if (performance.now() > until) {
      // The host goes to the end of the queue again, like a host with its first lookup.
      return enqueueSigners(pod, [{ host, isKnown, isRetry: false }])
    }
    const outcomes = await Promise.all(addresses.map((address) => lookUpSigner(pod, address, within)))
    const withOutcome = (wanted: LookupOutcome) => addresses.filter((_, index) => outcomes[index] === wanted)
    await deleteLookups(pod.db, withOutcome('found'))
    await postpone(pod, withOutcome('failed'), tries)
    if (outcomes.includes('postponed')) return delayLookups(pod.db, await findAllDueLookups(pod.db, host))
    if (outcomes.includes('absent')) return postpone(pod, await findAllDueLookups(pod.db, host), tries)
    atOnce = SIGNER_LIMITS.atOnce
  }
}

async function lookUpSigner(pod: Pod, address: string, within: number): Promise<LookupOutcome> {
  try {
    await discoverPerson(pod, address, { again: true, within })
    return 'found'
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    if (isLocalOverload(error)) return 'postponed'
    pod.log.info({ fault: error.fault, reason: error.message }, 'signer not found')
    return error.cause instanceof RemotePodError && hostFaults.has(error.cause.fault) ? 'absent' : 'failed'
  }
}

/** Faults of the whole host, not of one person. */
const hostFaults: ReadonlySet<RemoteFault> = new Set(['dns', 'net', 'timeout', 'ssl', 'not_allowed'])

async function postpone(pod: Pod, addresses: readonly string[], tries: number): Promise<void> {
  const givenUp = await postponeLookups(pod.db, addresses, tries)
  for (let done = 0; done < givenUp.length; done += GIVEN_UP_LOOKUP_BATCH_SIZE) {
    await giveUpLookups(pod, givenUp.slice(done, done + GIVEN_UP_LOOKUP_BATCH_SIZE))
  }
}

/** Each address takes a lock, and the lock table of the server has some thousand places for all sessions. */
const GIVEN_UP_LOOKUP_BATCH_SIZE = 100

async function giveUpLookups(pod: Pod, addresses: readonly string[]): Promise<void> {
  await pod.db.transaction(async (transaction) => {
    // With the locks no message can start to wait for a signer between these two statements.
    await lockEntityKeys(
      transaction,
      addresses.map((address) => `person:${address}` as const),
    )
    await giveUpSigners(pod, transaction, addresses)
    await deleteLookups(transaction, addresses)
  })
}
